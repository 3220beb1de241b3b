"""What tmux 3.3a prints when no `-F` is given."""

from __future__ import annotations

_PANE = (
    "[#{pane_width}x#{pane_height}] [history #{history_size}/#{history_limit}, #{history_bytes} bytes] "
    "#{pane_id}#{?pane_active, (active),}#{?pane_dead, (dead),}"
)
LIST_PANES = "#{pane_index}: " + _PANE
LIST_PANES_OF_SESSION = "#{window_index}.#{pane_index}: " + _PANE
LIST_ALL_PANES = "#{session_name}:#{window_index}.#{pane_index}: " + _PANE
LIST_WINDOWS = (
    "#{window_index}: #{window_name}#{window_raw_flags} (#{window_panes} panes) [#{window_width}x#{window_height}] "
    "[layout #{window_layout}] #{window_id}#{?window_active, (active),}"
)
LIST_ALL_WINDOWS = (
    "#{session_name}:#{window_index}: #{window_name}#{window_raw_flags} (#{window_panes} panes) "
    "[#{window_width}x#{window_height}] "
)
LIST_SESSIONS = (
    "#{session_name}: #{session_windows} windows (created #{t:session_created})"
    "#{?session_grouped, (group ,}#{session_group}#{?session_grouped,),}#{?session_attached, (attached),}"
)
NEW_SESSION = "#{session_name}:"
NEW_WINDOW = "#{session_name}:#{window_index}.#{pane_index}"
SPLIT_WINDOW = NEW_WINDOW
BREAK_PANE = NEW_WINDOW
DISPLAY_MESSAGE = "[#{session_name}] #{window_index}:#{window_name}, current pane #{pane_index} - (%H:%M %d-%b-%y)"
