"""What every controller needs to talk to an API server: client, informers, workqueue, events, clock.

Knows the wire and nothing of what the objects mean. Controllers see the two protocols of `api.py`;
behind them is HTTP, or the embedded server in the same process.
"""

from __future__ import annotations
