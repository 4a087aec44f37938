"""Closed classes of English words that several rules read."""

from __future__ import annotations

BE = frozenset("is are was were be been being".split())
AUXILIARIES = BE | frozenset("had has have having will would can could may might shall should must do does did".split())
ARTICLES = frozenset("a an the".split())
CONJUNCTIONS = frozenset("and but or while whereas then".split())
PREPOSITIONS = frozenset(
    "in at to from by for with on under near into behind beside of after before during since".split()
)
RELATIVE = frozenset("who whom whose which where that".split())
"""Words that begin a clause about the word before them."""
STANDING_IN = frozenset("one ones".split())
"""Words that stand for what was named before."""
NEGATORS = frozenset(
    "not no non never none nobody nothing nowhere neither without cannot hardly rarely fail fails failed refuse "
    "refuses refused lack lacks lacked unable".split()
)
"""Words that deny what follows, besides all words that end in n't."""
ONLY = frozenset("only exclusively solely".split())
"""Words before that to which a statement is limited."""
SYMMETRIC = frozenset(
    "and or with near between both as meet meets met marry married marries play plays played join joined equal equals "
    "like resemble resembles border borders bordered".split()
)
"""Words whose two sides may be exchanged."""
TITLES = frozenset("mr mrs ms dr sir dame lord lady prof professor honorable honourable chief justice".split())
"""Words before names that are not part of them."""
CALENDAR = frozenset(
    """
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
    """.split()
)
"""Months and days of the week, which take the place of no other names."""
MAY = "may (month)"
"""Word and stem of the month, which the verb does not share."""
DATES = CALENDAR - {"may"} | {MAY} | {f"{word}s" for word in CALENDAR if word.endswith("day")}
"""Words for months and days of the week as they are parsed."""
