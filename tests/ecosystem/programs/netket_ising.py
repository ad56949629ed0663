"""Variational Monte Carlo of netket: the ground state of a chain of spins in a transverse field."""

import jax
import netket as nk
import optax

hilbert = nk.hilbert.Spin(s=1 / 2, N=6)
chain = nk.graph.Chain(6, pbc=True)
hamiltonian = nk.operator.IsingJax(hilbert, graph=chain, h=1.0)
sampler = nk.sampler.MetropolisLocal(hilbert, n_chains=8)
state = nk.vqs.MCState(sampler, nk.models.RBM(alpha=1), n_samples=64, seed=0, sampler_seed=1)
driver = nk.driver.VMC_SR(hamiltonian, optax.sgd(0.05), variational_state=state, diag_shift=0.1)
for _ in range(8):
    driver.run(1, out=None, show_progress=False)
    print(driver.info, state.expect(hamiltonian))
print(jax.tree.map(lambda x: x.sum().round(4), state.parameters))
print(nk.exact.lanczos_ed(hamiltonian).round(6))
