"""`python -m dari` is the `dari` command."""

from dari.cli.main import main

raise SystemExit(main())
