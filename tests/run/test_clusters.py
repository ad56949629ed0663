"""Values that schedulers give to a process, and those that jax reads."""

import io
import sys
import types

import pytest

from minijax.run import clusters, plugins

SLURM = dict(SLURM_JOB_ID="123456", SLURM_STEP_NODELIST="n", SLURM_NTASKS="4", SLURM_PROCID="2", SLURM_LOCALID="1")
OPEN_MPI = dict(
    OMPI_MCA_orte_hnp_uri="1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
    OMPI_COMM_WORLD_SIZE="4", OMPI_COMM_WORLD_RANK="3", OMPI_COMM_WORLD_LOCAL_RANK="1",
)  # fmt: skip
NODE_LISTS = """
node001 node001,node002 node[1-3] gpu[012-015,020],x7 a[3,5-7]b r[1-2]c[3-4] n[007,009-011].cluster.local a,b[1-2] a-b-[01-02]
""".split()
URIS = """
1531576320.0;tcp://10.96.0.1,10.148.0.1,10.108.0.1:34911
1314521088.0;tcp6://[fe80::b9b:ac5d:9cf0:b858,2620:10d:c083:150e::3000:2]:43370
4096.1;tcp://192.168.0.7:1
""".split()


@pytest.fixture
def environment(monkeypatch):
    for name in ("SLURM_JOB_ID", "OMPI_MCA_orte_hnp_uri", "KUBERNETES_SERVICE_HOST", "TPU_WORKER_HOSTNAMES"):
        monkeypatch.delenv(name, raising=False)

    def told(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return told


def _answers(cluster, port=None):
    """Where the first process listens, how many there are, which this one is, and which on its machine."""
    return cluster.coordinator_address(port), cluster.process_count(), cluster.process_id(), cluster.local_process_id()


def _of_jax(name, port=None):
    from jax._src import clusters as theirs

    cluster = getattr(theirs, name)
    answers = cluster.get_process_count(), cluster.get_process_id(), cluster.get_local_process_id()
    return cluster.is_env_present(), (cluster.get_coordinator_address(7, port), *answers)


@pytest.mark.oracle
@pytest.mark.parametrize("port", [None, "1234"])
def test_slurm_and_open_mpi_are_detected_as_by_jax(environment, port):
    for nodes in NODE_LISTS:
        environment(**{**SLURM, "SLURM_STEP_NODELIST": nodes})
        slurm = clusters.Slurm()
        assert (slurm.is_present(), _answers(slurm, port)) == _of_jax("SlurmCluster", port)
    for uri in URIS:
        environment(**{**OPEN_MPI, "OMPI_MCA_orte_hnp_uri": uri})
        mpi = clusters.OpenMpi()
        assert (mpi.is_present(), _answers(mpi, port)) == _of_jax("OmpiCluster", port)


def test_a_cluster_is_detected_if_it_provides_all_values(environment, monkeypatch):
    assert clusters.present() is None
    environment(**SLURM)
    assert clusters.present().name == "slurm"
    monkeypatch.delenv("SLURM_LOCALID")
    assert clusters.present() is None
    environment(**OPEN_MPI)
    assert clusters.present().name == "ompi"


def test_mpi4py_has_the_first_process_tell_its_name(monkeypatch):
    class World:
        rank = 0
        Get_size, Get_rank = lambda self: 4, lambda self: self.rank
        Split_type, bcast = lambda self, kind: self, lambda self, x, root: x

    monkeypatch.setitem(sys.modules, "mpi4py", types.SimpleNamespace(
        MPI=types.SimpleNamespace(COMM_WORLD=World(), COMM_TYPE_SHARED="shared"), __spec__=object()
    ))  # fmt: skip
    cluster = clusters.Mpi4py()
    monkeypatch.setattr(clusters, "mpi", sys.modules["mpi4py"])
    address, *others = _answers(cluster)
    name, _, port = address.rpartition(":")
    assert cluster.is_present() and cluster.only_by_name and others == [4, 0, 0]
    assert name and 61440 <= int(port) < 65536 and cluster.coordinator_address("1234") == f"{name}:1234"
    World.rank = 1
    assert cluster.coordinator_address(None) is None


def test_tpu_machines_read_the_metadata_server_or_the_environment(environment, monkeypatch):
    metadata = {
        "worker-network-endpoints": "a:b:10.0.0.2,c:d:10.0.0.3",
        "agent-worker-number": "1",
        "tpu-env": "X: 'y'\n",
    }
    monkeypatch.setattr(clusters, "_metadata", metadata.__getitem__)
    monkeypatch.setattr(plugins, "find_tpu", lambda: "libtpu.so")
    monkeypatch.delenv("TPU_SKIP_MDS_QUERY", raising=False)
    assert clusters.present().name == "gcetpu"
    assert _answers(clusters.GceTpu()) == ("10.0.0.2:8482", 2, 1, None)
    metadata["tpu-env"] = (
        "MEGASCALE_COORDINATOR_ADDRESS: 'far:80'\nMEGASCALE_NUM_SLICES: '3'\nMEGASCALE_SLICE_ID: '2'\n"
    )
    assert _answers(clusters.GceTpu(), "77") == ("far:77", 6, 5, None)
    environment(TPU_WORKER_HOSTNAMES="h0,h1,h2", TPU_WORKER_ID="1")
    environment(MEGASCALE_COORDINATOR_ADDRESS="mega:80", MEGASCALE_NUM_SLICES="2", MEGASCALE_SLICE_ID="1")
    assert clusters.present().name == "gketpu"
    assert _answers(clusters.GkeTpu()) == ("mega:8482", 6, 4, None)


def test_requests_to_the_metadata_server_have_its_header(environment, monkeypatch):
    asked = []

    def open_url(request, timeout):
        asked.append((request.full_url, request.headers, timeout))
        return io.BytesIO(b"7")

    monkeypatch.setattr("urllib.request.urlopen", open_url)
    environment(GCE_METADATA_IP="1.2.3.4")
    assert clusters.GceTpu().worker() == 7
    url = "http://1.2.3.4/computeMetadata/v1/instance/attributes/agent-worker-number"
    assert asked == [(url, {"Metadata-flavor": "Google"}, 60)]

    def refuse(request, timeout):
        raise OSError("no route")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    with pytest.raises(RuntimeError, match="agent-worker-number"):
        clusters.GceTpu().worker()


def test_kubernetes_tells_of_the_job_of_a_pod(environment, monkeypatch, tmp_path):
    new = types.SimpleNamespace
    owner = new(controller=True, name="train")
    pod = new(metadata=new(owner_references=[owner]), spec=new(subdomain="svc"))
    job = new(metadata=new(name="train"), spec=new(parallelism=3))
    asked = []

    class Denied(Exception):
        pass

    def pods(namespace, field_selector):
        asked.append((namespace, field_selector))
        return new(items=[pod])

    client = new(
        CoreV1Api=lambda: new(list_namespaced_pod=pods),
        BatchV1Api=lambda: new(read_namespaced_job=lambda name, namespace: job),
        ApiException=Denied,
    )
    cluster = clusters.Kubernetes()
    with pytest.warns(UserWarning, match="`kubernetes`"):
        environment(KUBERNETES_SERVICE_HOST="10.0.0.1", HOSTNAME="train-2-x", JOB_COMPLETION_INDEX="2")
        assert not cluster.is_present()
    package = types.ModuleType("kubernetes")
    package.__spec__ = object()
    monkeypatch.setitem(sys.modules, "kubernetes", package)
    monkeypatch.setattr(clusters, "kubernetes", new(client=client, config=new(load_incluster_config=lambda: None)))
    monkeypatch.setattr("socket.gethostbyname", {"train-2-x": "10.9.9.9"}.__getitem__)
    monkeypatch.setattr(clusters.Kubernetes, "_ACCOUNT", tmp_path / "namespace")
    (tmp_path / "namespace").write_text("ns")
    assert cluster.is_present() and _answers(cluster) == ("train-0.svc:55527", 3, 2, None)
    assert asked[0] == ("ns", "status.podIP=10.9.9.9")
    pod.spec.subdomain = None
    with pytest.raises(RuntimeError, match="headless service"):
        cluster.coordinator_host()
    monkeypatch.delenv("JOB_COMPLETION_INDEX")
    with pytest.raises(RuntimeError, match="Indexed"):
        cluster.process_id()
