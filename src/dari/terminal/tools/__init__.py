from dari.terminal.tools.toolkit import TerminalTools

__all__ = ["TerminalTools"]
