"""The special tools of design 002 §3.2, by family."""

from __future__ import annotations

from dari.terminal.tools.special_clipboard import ClipboardTools
from dari.terminal.tools.special_contexts import ContextTools
from dari.terminal.tools.special_ime import ImeTools
from dari.terminal.tools.special_insights import InsightTools
from dari.terminal.tools.special_workflows import WorkflowTools

SPECIAL_FAMILIES = (InsightTools, ImeTools, ClipboardTools, WorkflowTools, ContextTools)
