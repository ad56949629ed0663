"""Detects the cluster scheduler that started this process, and reads the number of processes and its index."""

import contextlib
import importlib.util
import os
import re
import socket
import warnings
import zlib
from pathlib import Path
from typing import Any

from minijax.base.lazy import defer
from minijax.run.clients import plugins

kubernetes = defer("kubernetes")
mpi = defer("mpi4py")
request = defer("urllib.request")

# Ports outside the system's ephemeral range; jobs are distributed over them by job number.
_FIRST_PORT, _PORTS = 61440, 4096


class Cluster:
    """A scheduler called `name`; with `only_by_name` it is used only if the user requests it by name."""

    name = ""
    only_by_name = False

    def is_present(self) -> bool:
        """Returns whether this process was started by the scheduler."""
        raise NotImplementedError

    def coordinator_host(self) -> str:
        """The host of the first process."""
        raise NotImplementedError

    def port(self) -> int:
        """A port that is the same in all processes."""
        raise NotImplementedError

    def coordinator_address(self, port: str | None) -> str:
        """The address at which the first process listens; at `port`, if that is not None."""
        return f"{self.coordinator_host()}:{port or self.port()}"

    def process_count(self) -> int:
        """The number of processes."""
        raise NotImplementedError

    def process_id(self) -> int:
        """The index of this process."""
        raise NotImplementedError

    def local_process_id(self) -> int | None:
        """The index of this process on its machine; None if it is the only process there."""
        return None


class OpenMpi(Cluster):
    """Open MPI: `mpirun` sets environment variables."""

    name = "ompi"

    def is_present(self) -> bool:
        return "OMPI_MCA_orte_hnp_uri" in os.environ

    def coordinator_host(self) -> str:
        # As in 1531576320.0;tcp://10.96.0.1,10.148.0.1:34911, and tcp6://[fe80::1,2620::2]:43370
        addresses = os.environ["OMPI_MCA_orte_hnp_uri"].partition("://")[2]
        return re.split(r"[,\]]|:\d+$", addresses.lstrip("["))[0]

    def port(self) -> int:
        job = int(os.environ["OMPI_MCA_orte_hnp_uri"].partition(".")[0])
        return _FIRST_PORT + job // _PORTS % _PORTS

    def process_count(self) -> int:
        return int(os.environ["OMPI_COMM_WORLD_SIZE"])

    def process_id(self) -> int:
        return int(os.environ["OMPI_COMM_WORLD_RANK"])

    def local_process_id(self) -> int | None:
        return int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])


class Slurm(Cluster):
    """Slurm: `srun` sets environment variables."""

    name = "slurm"

    def is_present(self) -> bool:
        return all(f"SLURM_{n}" in os.environ for n in ("JOB_ID", "STEP_NODELIST", "NTASKS", "PROCID", "LOCALID"))

    def coordinator_host(self) -> str:
        # The first of a list like node001,node[012-015,020]
        first, bracket, numbers = re.match(r"([^,\[]*)(\[?)([^,\-\]]*)", os.environ["SLURM_STEP_NODELIST"]).groups()  # pyright: ignore[reportOptionalMemberAccess]
        return first + numbers if bracket else first

    def port(self) -> int:
        return _FIRST_PORT + int(os.environ["SLURM_JOB_ID"]) % _PORTS

    def process_count(self) -> int:
        return int(os.environ["SLURM_NTASKS"])

    def process_id(self) -> int:
        return int(os.environ["SLURM_PROCID"])

    def local_process_id(self) -> int | None:
        return int(os.environ["SLURM_LOCALID"])


class Mpi4py(Cluster):
    """Any MPI, through mpi4py."""

    name = "mpi4py"
    only_by_name = True

    def is_present(self) -> bool:
        return importlib.util.find_spec("mpi4py") is not None

    def coordinator_address(self, port: str | None) -> str:
        world = mpi.MPI.COMM_WORLD
        here = None
        if world.Get_rank() == 0:
            host = socket.gethostname()
            here = f"{host}:{port or _FIRST_PORT + zlib.crc32(host.encode()) % _PORTS}"
        return world.bcast(here, root=0)

    def process_count(self) -> int:
        return int(mpi.MPI.COMM_WORLD.Get_size())

    def process_id(self) -> int:
        return int(mpi.MPI.COMM_WORLD.Get_rank())

    def local_process_id(self) -> int | None:
        return int(mpi.MPI.COMM_WORLD.Split_type(mpi.MPI.COMM_TYPE_SHARED).Get_rank())


class _Tpu(Cluster):
    """The machines of one TPU slice, or of several slices."""

    def is_in_kubernetes(self) -> bool:
        """Returns whether environment variables list the machines."""
        return "TPU_PROCESS_ADDRESSES" in os.environ or "TPU_WORKER_HOSTNAMES" in os.environ

    def workers(self) -> list[str]:
        """The host names of this slice."""
        raise NotImplementedError

    def worker(self) -> int:
        """The index of this machine in its slice."""
        raise NotImplementedError

    def coordinator_host(self) -> str:
        slices = os.environ.get("MEGASCALE_COORDINATOR_ADDRESS") or _tpu_setting("MEGASCALE_COORDINATOR_ADDRESS")
        return (slices or self.workers()[0]).partition(":")[0]

    def port(self) -> int:
        return 8482

    def process_count(self) -> int:
        return len(self.workers()) * int(self._of_slices("MEGASCALE_NUM_SLICES", "1"))

    def process_id(self) -> int:
        return self.worker() + int(self._of_slices("MEGASCALE_SLICE_ID", "0")) * len(self.workers())

    def _of_slices(self, name: str, alone: str) -> str:
        return os.environ.get(name) or _tpu_setting(name) or alone


class GceTpu(_Tpu):
    """Cloud TPU machines, which query the metadata server."""

    name = "gcetpu"

    def is_present(self) -> bool:
        return plugins.find_tpu() is not None and not self.is_in_kubernetes()

    def workers(self) -> list[str]:
        return [worker.split(":")[2] for worker in _metadata("worker-network-endpoints").split(",")]

    def worker(self) -> int:
        return int(_metadata("agent-worker-number"))


class GkeTpu(_Tpu):
    """Cloud TPU machines in a Kubernetes cluster, which sets environment variables."""

    name = "gketpu"

    def is_present(self) -> bool:
        return plugins.find_tpu() is not None and self.is_in_kubernetes()

    def workers(self) -> list[str]:
        names = os.environ.get("TPU_PROCESS_ADDRESSES") or os.environ["TPU_WORKER_HOSTNAMES"]
        return [worker.partition(":")[0] for worker in names.split(",")]

    def worker(self) -> int:
        return int(os.environ["TPU_WORKER_ID"])


_METADATA_SECONDS = 60


def _metadata(key: str) -> str:
    """An attribute of a Google machine from its metadata server. Raises RuntimeError if that does not answer."""
    server = os.environ.get("GCE_METADATA_IP", "metadata.google.internal")
    url = f"http://{server}/computeMetadata/v1/instance/attributes/{key}"
    try:
        asked = request.Request(url, headers={"Metadata-Flavor": "Google"})
        with request.urlopen(asked, timeout=_METADATA_SECONDS) as answer:
            return answer.read().decode()
    except OSError as error:
        raise RuntimeError(f"initialize: the metadata server does not know {key!r} ({url}): {error}") from error


def _tpu_setting(name: str) -> str | None:
    """The value in a line `NAME: 'value'` of the machine's settings; None without such a line or metadata server."""
    if os.environ.get("TPU_SKIP_MDS_QUERY"):
        return None
    with contextlib.suppress(RuntimeError):
        match = re.search(rf"^{name}: '(.*)'$", _metadata("tpu-env"), re.MULTILINE)
        return match and match[1]
    return None


class Kubernetes(Cluster):
    """An indexed Kubernetes job, whose pods find each other through a headless service."""

    name = "k8s"
    _ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

    def is_present(self) -> bool:
        if "KUBERNETES_SERVICE_HOST" not in os.environ:
            return False
        if importlib.util.find_spec("kubernetes") is None:
            warnings.warn(
                "jax.distributed.initialize: this is a Kubernetes pod, but the package `kubernetes`, which asks for "
                "its job, is not installed; pass the arguments, or install it.",
                stacklevel=4,
            )
            return False
        kubernetes.config.load_incluster_config()
        return True

    def _pod(self) -> Any:
        address = socket.gethostbyname(os.environ["HOSTNAME"])
        pods = kubernetes.client.CoreV1Api().list_namespaced_pod(
            namespace=self._ACCOUNT.read_text(), field_selector=f"status.podIP={address}"
        )
        (pod,) = pods.items
        return pod

    def _job_and_pod(self) -> tuple[Any, Any]:
        try:
            pod = self._pod()
            owner = next(owner for owner in pod.metadata.owner_references if owner.controller)
            api = kubernetes.client.BatchV1Api()
            return api.read_namespaced_job(name=owner.name, namespace=self._ACCOUNT.read_text()), pod
        except kubernetes.client.ApiException as error:
            raise RuntimeError(
                "initialize: the service account of this pod may not ask Kubernetes for its pod and job; give it a "
                f"role that lists pods and gets jobs: {error}"
            ) from error

    def coordinator_host(self) -> str:
        job, pod = self._job_and_pod()
        if not pod.spec.subdomain:
            raise RuntimeError(
                f"initialize: pods of job {job.metadata.name} have no names of their own: make a headless service, and "
                "name it as `subdomain` in the spec of the job's template"
            )
        return f"{job.metadata.name}-0.{pod.spec.subdomain}"

    def port(self) -> int:
        return 55527

    def process_count(self) -> int:
        return int(self._job_and_pod()[0].spec.parallelism)

    def process_id(self) -> int:
        if "JOB_COMPLETION_INDEX" not in os.environ:
            raise RuntimeError('initialize: a Kubernetes job must be indexed: set `completionMode: "Indexed"`')
        return int(os.environ["JOB_COMPLETION_INDEX"])


CLUSTERS: tuple[Cluster, ...] = (OpenMpi(), Slurm(), Mpi4py(), GceTpu(), GkeTpu(), Kubernetes())


def present() -> Cluster | None:
    """The scheduler that started this process, except for those used only by name; None if none did."""
    return next((c for c in CLUSTERS if not c.only_by_name and c.is_present()), None)
