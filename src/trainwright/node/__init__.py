"""The laptop's node: pods run as plain processes of the user.

`agent` follows the pods that are bound to this node and gives each a `runner`, which makes a
`container_run` for each start of a container from what `preparation` worked out; `shim` is the small
program that holds one container's process and outlives the plane. What a status says follows purely
from what the shims recorded (`status`); environment, names and ports are pure rewriting. This
package talks to the API server through `machinery.api` only and knows no controller.
"""
