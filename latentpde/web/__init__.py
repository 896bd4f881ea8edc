"""The service and its one page: `latentpde serve`.

The server itself (`app`, `guards`, `files`) knows no physics and does not load torch; all work is done by processes
with limits (`workers`), which run what `tasks` names: scenes of the page (`scene`, `picture`) and users' files
(`uploads`).
"""
