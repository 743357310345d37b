#!/usr/bin/python
"""Sets on a host what a run recommends."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: apply
short_description: Set what a run recommends
description:
  - Runs C(spindle apply). Nothing is done where the same run is applied and in force.
  - With I(confirm_within) the host takes the settings back by itself, unless they are confirmed in time; so a host that
    is lost in the middle of a play does not keep what nobody looked at.
options:
  run:
    description: The run file on the host. Needed unless I(confirm) is true.
    type: path
  confirm:
    description: Keep what was applied with I(confirm_within).
    type: bool
    default: false
  device:
    description: The device to set, or a directory on it, where it is not that of the run.
    type: path
  anyway:
    description: Set it though the run was made on another host. A run of another host of the same kind is such a one.
    type: bool
    default: false
  confirm_within:
    description: Take it back after this time, such as C(10m), unless it is confirmed.
    type: str
  persist:
    description: Make it outlive a reboot. Cannot be had with I(confirm_within).
    type: bool
    default: false
  replace:
    description: Put it in the place of what another run set. Without this the task fails where something is applied.
    type: bool
    default: false
extends_documentation_fragment:
  - spindle.fleet.program
author:
  - The authors of Spindle
"""

EXAMPLES = r"""
- name: Set what the first hosts settled
  spindle.fleet.apply:
    run: /var/lib/spindle/fleet/settled.spindle
    device: /var/lib/mysql
    anyway: true
    confirm_within: 10m
"""

RETURN = r"""
applied:
  description: What is applied now.
  returned: always
  type: list
  elements: dict
journal:
  description: The journal of what this task set, for M(spindle.fleet.undo); also where the task failed after it was set.
  returned: when this task set something
  type: str
"""

import json
import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.spindle.fleet.plugins.module_utils.spindle import ARGUMENTS, Spindle


def confirm(module, spindle):
    """Keeps what waits to be confirmed, if anything does."""
    waiting = [it for it in spindle.applied()[0] if it.get("confirm_by")]
    if waiting and not module.check_mode:
        spindle.run(["apply", "--confirm"])
    module.exit_json(changed=bool(waiting), applied=spindle.applied()[0])


def lines(changes, value):
    """What the settings are before or after, a line each."""
    return "".join("%s %s: %s\n" % (it["device"], it["setting"], it[value]) for it in changes)


def words(params):
    """The flags that say what is set, and where."""
    flags = [params["run"]]
    if params["device"]:
        flags += ["--device", params["device"]]
    if params["anyway"]:
        flags.append("--anyway")
    return flags


def journal(out):
    """The name of the journal in what the program printed, if it set anything."""
    try:
        name = json.loads(out).get("journal")
    except (ValueError, AttributeError):
        name = None
    return dict(journal=name) if name else {}


def main():
    """Entry."""
    arguments = dict(
        run=dict(type="path"),
        confirm=dict(type="bool", default=False),
        device=dict(type="path"),
        anyway=dict(type="bool", default=False),
        confirm_within=dict(type="str"),
        persist=dict(type="bool", default=False),
        replace=dict(type="bool", default=False),
    )
    arguments.update(ARGUMENTS)
    module = AnsibleModule(
        argument_spec=arguments,
        supports_check_mode=True,
        required_if=[("confirm", False, ("run",))],
    )
    if module.params["persist"] and module.params["confirm_within"]:
        module.fail_json(msg="persist and confirm_within exclude one another: a udev rule stays")
    spindle = Spindle(module)
    if module.params["confirm"]:
        confirm(module, spindle)
    run = module.params["run"]
    name = os.path.splitext(os.path.basename(run))[0]
    applied, in_force = spindle.applied()
    if in_force and any(os.path.basename(it["run"]) == name for it in applied):
        module.exit_json(changed=False, applied=applied)
    planned = spindle.read(["apply", "--dry-run"] + words(module.params))[1]
    changes = planned["changes"]
    difference = dict(before=lines(changes, "now"), after=lines(changes, "then"))
    # A rule for udev may be wanted though all is set.
    anything = bool(changes) or (planned["outcome"] == "already_set" and module.params["persist"])
    if not anything or module.check_mode:
        module.exit_json(changed=anything, applied=applied, diff=difference)
    flags = []
    if module.params["confirm_within"]:
        flags += ["--for", module.params["confirm_within"]]
    if module.params["persist"]:
        flags.append("--persist")
    if module.params["replace"]:
        flags.append("--replace")
    out = spindle.run(["apply", "--json"] + words(module.params) + flags, told=journal)[1]
    made = journal(out)
    applied = spindle.applied(made)[0]
    module.exit_json(changed=bool(made), applied=applied, diff=difference, **made)


if __name__ == "__main__":
    main()
