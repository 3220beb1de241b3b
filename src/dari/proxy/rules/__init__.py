"""Live rules: `RuleBook` keeps them, `RuleSet` answers for each request, `Decision` is the answer."""

from dari.proxy.rules.matched import MatchedRules
from dari.proxy.rules.rule_store import RuleStore
from dari.proxy.rules.ruleset import RuleSet

__all__ = ["MatchedRules", "RuleStore", "RuleSet"]
