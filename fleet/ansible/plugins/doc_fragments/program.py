"""What is said of the options that all modules have."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type


class ModuleDocFragment(object):
    """How the program is called."""

    DOCUMENTATION = r"""
options:
  program:
    description: The program.
    type: str
    default: spindle
  state_folder:
    description: The folder of Spindle's state; that of the program by default.
    type: path
"""
