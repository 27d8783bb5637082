"""The command line: one module a command, loaded when it is called.

Its objects live as long as it does: looking for garbage among them would be a tenth of what a short command costs.
"""

import gc

gc.set_threshold(500_000)  # new objects after which the collector looks
