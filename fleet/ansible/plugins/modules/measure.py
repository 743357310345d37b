#!/usr/bin/python
"""Compares settings on a host."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: measure
short_description: Compare I/O settings on a host, within a maintenance window
description:
  - Runs C(spindle compare) and keeps its run file. Where the file is complete already, nothing is done.
  - Outside of the window nothing is done, and the task fails.
options:
  target:
    description: A directory, a block device, or what else C(spindle compare) takes.
    type: str
    required: true
  run:
    description: The run file to write.
    type: path
    required: true
  arguments:
    description: Further words of the command, such as C(--schedulers none,mq-deadline).
    type: list
    elements: str
    default: []
  window:
    description: When the host may be loaded, by its own clock, such as C(22:00-04:00). It must be named.
    type: str
    required: true
extends_documentation_fragment:
  - spindle.fleet.program
author:
  - The authors of Spindle
"""

EXAMPLES = r"""
- name: Compare schedulers at night
  spindle.fleet.measure:
    target: /var/lib/mysql
    run: /var/lib/spindle/fleet/schedulers.spindle
    window: 01:00-05:00
    arguments: [--schedulers, "none,mq-deadline", --budget, 30m]
"""

RETURN = r"""
run:
  description: The run file.
  returned: always
  type: path
"""

import os
import re
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.spindle.fleet.plugins.module_utils.spindle import ARGUMENTS, Spindle

WINDOW = re.compile(r"^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)$")


def minutes(window):
    """Begin and end of a window in minutes of the day; none where it is none."""
    found = WINDOW.match(window)
    if not found:
        return None
    hours = [int(part) for part in found.groups()]
    return hours[0] * 60 + hours[1], hours[2] * 60 + hours[3]


def is_within(window, now):
    """Whether a minute of the day is in a window, which may go past midnight."""
    begin, end = window
    if begin <= end:
        return begin <= now < end
    return now >= begin or now < end


def main():
    """Entry."""
    arguments = dict(
        target=dict(type="str", required=True),
        run=dict(type="path", required=True),
        arguments=dict(type="list", elements="str", default=[]),
        window=dict(type="str", required=True),
    )
    arguments.update(ARGUMENTS)
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    params = module.params
    window = minutes(params["window"])
    if window is None:
        module.fail_json(msg="'%s' is no window: write it as 22:00-04:00" % params["window"])
    spindle = Spindle(module)
    exists = os.path.exists(params["run"])
    if exists and spindle.read(["report", params["run"]])[1].get("state") == "done":
        module.exit_json(changed=False, run=params["run"])
    here = time.localtime()
    if not is_within(window, here.tm_hour * 60 + here.tm_min):
        module.fail_json(
            msg="it is %02d:%02d here, outside of the window %s: nothing was measured"
            % (here.tm_hour, here.tm_min, params["window"])
        )
    if module.check_mode:
        module.exit_json(changed=True, run=params["run"])
    if exists:
        spindle.run(["resume", params["run"]])
    else:
        compare = ["compare", params["target"], "--output", params["run"], "--quiet"]
        spindle.run(compare + params["arguments"])
    module.exit_json(changed=True, run=params["run"])


if __name__ == "__main__":
    main()
