"""Rules: `RuleStore` keeps them, `RuleSet` finds those that apply to a request, `MatchedRules` are these."""

from dari.proxy.rules.matched import MatchedRules
from dari.proxy.rules.rule_store import RuleStore
from dari.proxy.rules.ruleset import RuleSet

__all__ = ["MatchedRules", "RuleStore", "RuleSet"]
