#!/usr/bin/python
"""Takes back what was applied on a host."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: undo
short_description: Take back what was applied
description:
  - Runs C(spindle undo) where something is applied, or where an interrupted program left something changed.
  - In check mode it tells what is applied; what interrupted programs left is only known by undoing it.
options:
  journal:
    description:
      - Take back only what this journal names, as M(spindle.fleet.apply) returned it. Nothing is done where it is taken
        back already.
    type: str
extends_documentation_fragment:
  - spindle.fleet.program
author:
  - The authors of Spindle
"""

EXAMPLES = r"""
- name: Take back what was applied
  spindle.fleet.undo:

- name: Take back what this play applied, and leave what an earlier one did
  spindle.fleet.undo:
    journal: "{{ set.journal }}"
  when: set.journal is defined
"""

RETURN = r"""
undone:
  description: What was put back, as C(spindle undo --json) says it.
  returned: always
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.spindle.fleet.plugins.module_utils.spindle import ARGUMENTS, Spindle


def main():
    """Entry."""
    arguments = dict(journal=dict(type="str"))
    arguments.update(ARGUMENTS)
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    spindle = Spindle(module)
    journal = module.params["journal"]
    applied = [it for it in spindle.applied()[0] if journal in (None, it["name"])]
    before = "".join("%s, from run %s\n" % (it["label"], it["run"]) for it in applied)
    difference = dict(before=before, after="")
    if module.check_mode:
        module.exit_json(changed=bool(applied), undone=[], diff=difference)
    undone = spindle.read(["undo"] + (["--journal", journal] if journal else []))[1]
    module.exit_json(changed=bool(undone), undone=undone, diff=difference)


if __name__ == "__main__":
    main()
