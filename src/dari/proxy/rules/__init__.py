"""Live rules: `RuleBook` keeps them, `RuleSet` answers for each request, `Decision` is the answer."""

from dari.proxy.rules.book import RuleBook
from dari.proxy.rules.decision import Decision
from dari.proxy.rules.ruleset import RuleSet

__all__ = ["Decision", "RuleBook", "RuleSet"]
