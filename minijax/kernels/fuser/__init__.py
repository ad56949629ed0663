"""The fuser: functions around a kernel become part of it, and their blocks follow from those of the kernel."""
