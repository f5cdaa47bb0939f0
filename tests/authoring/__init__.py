"""Writing plug-ins: templates, checks, the smallest one."""
