"""What each command of the CLI does; :mod:`syncheck.cli` reads the arguments."""
