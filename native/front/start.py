"""What the front starts in Python: main(first, words) of a module of ours; argv: module, front, first, words.

Where the interpreter lies beside the front, it does without `site`: that takes a third of Python's start, and
finds one directory for us. When a module is not there, what `site` does is made up for.

A package that cannot be imported sends us back into the front, which then does what it does without Python.
"""

import gc
import os
import sys

gc.disable()  # a verb makes little garbage, and every import would look for it


class Site:
    """The finder for what is found nowhere else."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if path is not None:
            return None
        sys.meta_path.remove(Site)
        import site

        site.main()
        found = (finder.find_spec(name, None) for finder in sys.meta_path)
        return next(filter(None, found), None)


if sys.flags.no_site:
    folder = "{}/lib/python{}.{}/site-packages".format(sys.argv[2].rpartition("/bin/")[0], *sys.version_info)
    sys.path.append(folder)
    try:
        with open(folder + "/_diapause.pth", encoding="utf-8") as link:  # of an editable installation
            sys.path.append(link.readline().strip())
    except OSError:
        pass
    sys.meta_path.append(Site)
try:
    main = __import__(sys.argv[1], fromlist=["main"]).main
except Exception:
    os.environ.pop("DIAPAUSE_FRONT_PID", None)
    os.environ["DIAPAUSE_BROKEN_PYTHON"] = str(os.getpid())
    os.execv(sys.argv[2], sys.argv[2:3] + sys.argv[4:])
status = main(sys.argv[3], sys.argv[4:])
os._exit(status)  # nothing is buffered, and taking Python apart takes as long again
