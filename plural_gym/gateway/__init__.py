"""The gateway: every model call that leaves this process goes through here.

`client.py` is its door, `complete(request)`. A call is one `call.py`: attempts, waits, the record. Where it
goes says `providers.py`, in which words a dialect (`chat.py`), over which connections `pool.py`.
"""
