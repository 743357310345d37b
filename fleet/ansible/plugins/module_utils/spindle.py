"""The program on a managed host."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json

ARGUMENTS = dict(
    program=dict(type="str", default="spindle"),
    state_folder=dict(type="path"),
)

DONE = 0
MISSED = 3


class Spindle(object):
    """Runs the program, and ends the task where it fails."""

    def __init__(self, module):
        self.module = module
        state = module.params.get("state_folder")
        self.environment = {"SPINDLE_STATE": state} if state else {}

    def run(self, words, accepted=(DONE,), told=None):
        """What the program prints; its exit code has to be one of those accepted. What I(told) makes of the output is
        returned with a failure."""
        command = [self.module.params["program"]] + words
        code, out, err = self.module.run_command(
            command, environ_update=self.environment
        )
        if code not in accepted:
            self.module.fail_json(
                msg="spindle %s ended with %d: %s" % (words[0], code, err.strip() or out.strip()),
                rc=code,
                stdout=out,
                stderr=err,
                **(told(out) if told else {})
            )
        return code, out, err

    def read(self, words, accepted=(DONE,), made=None):
        """The same as JSON. What was I(made) before is returned with a failure."""
        made = made or {}
        code, out, err = self.run(words + ["--json"], accepted, lambda out: made)
        try:
            return code, json.loads(out)
        except ValueError as error:
            self.module.fail_json(
                msg="spindle %s printed no JSON: %s" % (words[0], error),
                stdout=out,
                stderr=err,
                **made
            )

    def applied(self, made=None):
        """What is applied, and whether all of it is in force."""
        code, applied = self.read(["status"], (DONE, MISSED), made)
        return applied, code == DONE
