# The names of this module's table, written by tests/write_stubs.py.

from minijax.base.monitoring import clear_event_listeners as clear_event_listeners
from minijax.base.monitoring import record_event as record_event
from minijax.base.monitoring import record_event_duration_secs as record_event_duration_secs
from minijax.base.monitoring import record_event_time_span as record_event_time_span
from minijax.base.monitoring import record_scalar as record_scalar
from minijax.base.monitoring import register_event_duration_secs_listener as register_event_duration_secs_listener
from minijax.base.monitoring import register_event_listener as register_event_listener
from minijax.base.monitoring import register_event_time_span_listener as register_event_time_span_listener
from minijax.base.monitoring import register_scalar_listener as register_scalar_listener
from minijax.base.monitoring import unregister_event_duration_listener as unregister_event_duration_listener
from minijax.base.monitoring import unregister_event_listener as unregister_event_listener
from minijax.base.monitoring import unregister_event_time_span_listener as unregister_event_time_span_listener
from minijax.base.monitoring import unregister_scalar_listener as unregister_scalar_listener

__all__ = [
    "clear_event_listeners", "record_event", "record_event_duration_secs", "record_event_time_span", "record_scalar",
    "register_event_duration_secs_listener", "register_event_listener", "register_event_time_span_listener",
    "register_scalar_listener", "unregister_event_duration_listener", "unregister_event_listener",
    "unregister_event_time_span_listener", "unregister_scalar_listener"
]
