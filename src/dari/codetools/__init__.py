"""Code tools: search, format, lint, test and refactor a repository, behind `crewx-tools` and in the hub."""
