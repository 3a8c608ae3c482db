"""What lies on disk: a Trial's folder, a Job's folder and its ledger.

Replay, Reviews, leaderboards, exports and the pages are functions of these folders and need no live world.
Nothing here knows how a Trial is run; `ledger` alone loads pyarrow.
"""
