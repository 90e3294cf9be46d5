"""The command line: thin, one file per group of commands. It parses, calls, prints.

Exit codes: 0 done, 2 a mistake the user can mend (one sentence on stderr; `--debug` shows where it came from),
130 interrupted, with the command that goes on.
"""

import os
import sys
import time
from collections.abc import Sequence

from bayspike import __version__

ABOUT = """Bayesian continual learning with spiking neural networks.

Start with the demo, about two minutes, no download:

    bayspike run digits --preset demo --method bayes ewc sgd --out runs/demo

Then:

    bayspike tune digits --trials 20       choose hyper-parameters, the same way for every method
    bayspike report runs/demo              make its report.html again, or compare several runs
    bayspike evaluate runs/demo            judge a trained network on test data
    bayspike predict runs/demo image.png   watch one decision grow over time
    bayspike live                          a page to draw on: ask a learner, teach it, see what it remembers
    bayspike export runs/demo --out chip   write the committee for hardware
    bayspike data                          which data sets are at hand
    bayspike run folder --data DIR         learn from pictures or recordings of your own

Besides:

    bayspike COMMAND --help    explains a command
    bayspike --version         says which version this is
    bayspike COMMAND --debug   shows a mistake with its traceback
    bayspike --tyro-write-completion bash ~/.local/share/bash-completion/completions/bayspike"""


PATIENCE = 30.0  # seconds


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] in (["--version"], ["-V"]):
        print(f"bayspike {__version__}")
        return 0
    debug = "--debug" in arguments
    arguments = [each for each in arguments if each != "--debug"]
    if not arguments:
        arguments = ["--help"]
    from bayspike.errors import UserError

    try:
        return _dispatch(arguments)
    except UserError as error:
        if debug:
            raise
        return _sentence(str(error))
    except KeyboardInterrupt:
        if debug:
            raise
        print("bayspike: interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a disk that is full, read-only or failing, wherever it was noticed
        if debug:
            raise
        place = f"{error.filename}: " if error.filename is not None else ""
        return _sentence(f"{place}{error.strerror or error}; mend that and try again.")
    except MemoryError:
        if debug:
            raise
        return _sentence("there is not enough memory for this; try something smaller.")


def _sentence(text: str) -> int:
    """Tell the user, whatever the names of files are made of, in one line."""
    if os.environ.get("TORCHELASTIC_RUN_ID") and os.environ.get("RANK") != "0":
        # One of several, as a rule all of the same mind. The first to end takes the others with it, so the one that
        # speaks must come first; who is still there after a while is alone with its mistake.
        time.sleep(PATIENCE)
    shown = " ".join(text.split()).encode("utf-8", "backslashreplace").decode()
    print(f"bayspike: {shown}", file=sys.stderr)
    return 2


def _dispatch(arguments: list[str]) -> int:
    import tyro

    from bayspike.cli.arguments import check_arguments
    from bayspike.cli.data import Data, Info
    from bayspike.cli.live import Live
    from bayspike.cli.models import Evaluate, Export
    from bayspike.cli.optional import registry, with_plain_help
    from bayspike.cli.predict import Predict
    from bayspike.cli.run import Report, Resume, Run
    from bayspike.cli.tune import Tune

    commands: dict[str, type] = {
        "run": Run,
        "tune": Tune,
        "resume": Resume,
        "report": Report,
        "evaluate": Evaluate,
        "predict": Predict,
        "live": Live,
        "export": Export,
        "data": Data,
        "info": Info,
    }
    check_arguments(arguments, commands)
    with registry:
        command = tyro.extras.subcommand_cli_from_dict(
            {name: with_plain_help(each) for name, each in commands.items()},
            prog="bayspike",
            description=ABOUT,
            args=arguments,
            config=(tyro.conf.FlagCreatePairsOff,),
        )
    code: int = command.execute(arguments) if isinstance(command, Run) else command.execute()
    return code
