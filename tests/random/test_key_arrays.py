"""Operations on arrays of random keys, compared with jax: the same results, or errors of the same class."""

import copy
import importlib
import operator
import pickle
import warnings

import compare
import numpy as np
import pytest

pytestmark = pytest.mark.oracle

# Left out: where jax raises errors of MLIR, as in padding keys or reshaping them by columns, minijax works
# or names its own error.
WORKING = {
    "indices": """
        list(ks)
        len(ks)
        ks[0]
        ks[-1]
        ks[1:]
        ks[::-1]
        ks[None]
        ks[...,None]
        ks[np.array([0,2])]
        ks[jnp.array([2,0])]
        ks[m]
        ks[np.array([True,False,True])]
        ks[5]
        ks[jnp.int32(7)]
        kss[:,0]
        kss[0,1]
        kss[...,1]
        kss[1][2]
        kss[[0,1],[1,2]]
        k[()]
        k[...]
        k[None]
        ks[jnp.zeros(0,int)]
        ks[np.zeros(3,bool)]
    """,
    "updates": """
        ks.at[0].set(k)
        ks.at[0].set(ks[1])
        ks.at[:2].set(k)
        ks.at[:2].set(ks[1:])
        ks.at[0].get()
        ks.at[10].get(mode='fill')
        ks.at[10].get(mode='fill',fill_value=0)
        ks.at[10].get(mode='clip')
        ks.at[np.array([0,7])].get(mode='fill')
        ks.at[np.array([0,7])].get(mode='drop')
        ks.at[0].apply(lambda k: k)
        ks.at[ii].set(k)
        ks.at[m].set(k)
        ks.at[jnp.array(10)].set(k)
        ks.at[ii].set(ks[:2])
        kss.at[0].set(ks)
        kss.at[:,1].set(k)
        kss.at[0,1].get()
        k.at[()].set(ks[0])
        ks.at[:0].set(k)
    """,
    "operators": """
        ks==ks
        ks==k
        ks!=k
        k==k
        ks==None
        ks!=None
        ks=='a'
        +k
        k is k
        ks.aval.str_short()
        ks.global_shards[0].data
        ks[None].squeeze(0)
        ks[None].squeeze()
    """,
    "conversions": """
        np.shape(ks)
        np.ndim(ks)
        np.size(ks)
        np.reshape(ks,(1,3))
        np.transpose(kss)
        np.squeeze(kss)
        hasattr(ks,'__dlpack__')
        hasattr(ks,'__array__')
        hasattr(ks,'__jax_array__')
        hasattr(ks,'__array_priority__')
        type(ks).__name__
        isinstance(ks,J.Array)
        isinstance(ks,np.ndarray)
        isinstance(ks,jnp.ndarray)
        repr(k)
        str(ks)
        f"{k}"
        str(J.jit(lambda k:k).lower(ks).out_info)
        str(J.jit(lambda k:k).eval_shape(ks))
    """,
    "creation": """
        jnp.asarray(ks)
        jnp.array(ks)
        jnp.array(ks,copy=True)
        jnp.array([k,k])
        jnp.array([[k,k]])
        jnp.asarray([k,k])
        jnp.array([ks,ks])
        jnp.asarray(ks,dtype=ks.dtype)
        jnp.array(ks,ndmin=2)
        jnp.astype(ks,ks.dtype)
        jnp.empty_like(ks)
        jnp.zeros_like(ks)
        jnp.ones_like(ks)
        jnp.full_like(ks,k)
        jnp.full_like(ks,0)
        jnp.full_like(ks,ks)
        jnp.full_like(ks,ks[::-1])
        jnp.full((3,),ks)
        jnp.full((3,),k)
        jnp.zeros(3,k.dtype)
        jnp.ones(3,k.dtype)
        jnp.empty(3,k.dtype)
        jnp.copy(ks)
    """,
    "methods": """
        ks.T
        kss.T
        ks.shape
        ks.size
        ks.ndim
        k.size
        k.ndim
        k.nbytes
        k.itemsize
        ks.nbytes
        ks.committed
        ks.device
        ks.is_deleted()
        ks.is_fully_replicated
        ks.delete()
        ks.block_until_ready()
        ks.copy_to_host_async()
        ks.flatten()
        kss.ravel()
        kss.reshape(6)
        kss.reshape((3,2))
        kss.reshape(3,2)
        kss.reshape(-1)
        kss.transpose()
        kss.transpose(1,0)
        kss.transpose((1,0))
        kss.swapaxes(0,1)
        kss.squeeze()
        ks.take(ii)
        ks.copy()
    """,
    "dtypes": """
        str(ks.dtype)
        repr(ks.dtype)
        ks.dtype.name
        ks.dtype.itemsize
        ks.dtype==k.dtype
        ks.dtype!=k.dtype
        hash(ks.dtype)==hash(k.dtype)
        ks.dtype=='key<fry>'
        ks.dtype==np.dtype('uint32')
        J.dtypes.issubdtype(ks.dtype, J.dtypes.extended)
        J.dtypes.issubdtype(ks.dtype, np.generic)
        J.dtypes.issubdtype(ks.dtype, np.uint32)
        J.dtypes.issubdtype(ks.dtype, np.integer)
        jnp.issubdtype(J.dtypes.prng_key, J.dtypes.extended)
        J.dtypes.result_type(ks)==ks.dtype
        J.dtypes.canonicalize_dtype(ks.dtype,allow_extended_dtype=True)==ks.dtype
        jnp.result_type(ks)
    """,
    "devices": """
        ks.sharding
        ks.devices()
        ks.is_fully_addressable
        [s.data for s in ks.addressable_shards]
        [s.index for s in ks.addressable_shards]
        ks.addressable_data(0)
        J.device_put(ks)
        J.device_put(ks,J.devices()[0])
        J.device_put(ks,J.sharding.SingleDeviceSharding(J.devices()[0]))
        J.device_put({'a':ks,'b':1})
        J.device_put(ks,may_alias=True)
        J.device_put(ks,donate=True)
        J.device_get(ks)
        J.device_get({'a':ks})
        J.make_array_from_single_device_arrays((3,),ks.sharding,[ks])
        J.make_array_from_callback((3,),ks.sharding,lambda i: ks)
        J.make_array_from_process_local_data(ks.sharding,ks)
        jnp.meshgrid(ks,ks)
        J.vmap(lambda k: lax.all_gather(k,'i'),axis_name='i')(ks)
        J.vmap(lambda k: lax.ppermute(k,'i',[(0,1),(1,2),(2,0)]),axis_name='i')(ks)
        J.device_put(ks,J.NamedSharding(mesh,J.P('a')))
        J.jit(lambda k: k,in_shardings=J.NamedSharding(mesh,J.P('a')))(ks)
        J.jit(lambda k: k,out_shardings=J.NamedSharding(mesh,J.P('a')))(ks)
        J.shard_map(lambda k: k,mesh=mesh,in_specs=J.P('a'),out_specs=J.P('a'))(ks)
        J.shard_map(lambda k: J.vmap(r.normal)(k),mesh=mesh,in_specs=J.P('a'),out_specs=J.P('a'))(ks)
        J.shard_map(lambda k: lax.ppermute(k,'a',[(0,0)]),mesh=mesh,in_specs=J.P('a'),out_specs=J.P('a'))(ks)
    """,
    "copies": """
        copy.copy(ks)
        copy.deepcopy(ks)
        copy.deepcopy({'a': k})
        pickle.loads(pickle.dumps(ks))
        pickle.loads(pickle.dumps(k))
        pickle.loads(pickle.dumps(k.dtype)) == k.dtype
        copy.deepcopy(k.dtype) == k.dtype
        pickle.loads(pickle.dumps(J.ShapeDtypeStruct((2,),k.dtype))) == J.ShapeDtypeStruct((2,),k.dtype)
    """,
    "programs": """
        J.eval_shape(lambda k:k,ks)
        J.eval_shape(lambda k:r.split(k),k)
        J.eval_shape(lambda k:r.split(k),J.ShapeDtypeStruct((),k.dtype))
        J.eval_shape(r.normal,J.ShapeDtypeStruct((),k.dtype))
        J.eval_shape(r.normal,J.ShapeDtypeStruct((2,),np.uint32))
        J.ShapeDtypeStruct((2,),k.dtype)
        J.ShapeDtypeStruct.like(ks)
        J.jit(lambda k:k)(ks)
        J.jit(lambda k:(k,k[0]))(ks)
        J.jit(lambda k:r.normal(k))(k)
        J.jit(lambda k:k,donate_argnums=0)(r.split(k,4))
        J.jit(lambda k:k).lower(ks).compile()(ks)
        J.jit(lambda k:k).lower(J.ShapeDtypeStruct((3,),k.dtype)).compile()(ks)
        J.jit(lambda k:k).trace(ks).out_info
        J.checkpoint(lambda k,x: x*r.normal(k))(k,1.)
        J.make_jaxpr(lambda k:k)(ks)
        J.make_jaxpr(lambda: k)()
        J.make_jaxpr(lambda k: (k==k, k[0], jnp.where(True,k,k)))(ks)
        J.make_jaxpr(lambda k: k.at[0].set(k[1]))(ks)
        J.make_jaxpr(lambda: jnp.full((2,),k))()
        J.named_call(lambda k:k)(k)
        J.jit(lambda k: J.new_ref(k)[...])(ks)
    """,
    "trees": """
        J.typeof(ks).str_short()
        J.tree.map(lambda k:k,{'a':ks})
        J.tree.leaves({'a':ks})
        J.tree.map(jnp.zeros_like,{'a':ks})
        J.tree.map(lambda *a: jnp.stack(a),[k,k],[k,k])
        J.tree.all(J.tree.map(jnp.array_equal,ks,ks))
        J.tree.structure(ks)
        J.tree_util.tree_reduce(lambda a,b: b,[k,ks])
        J.block_until_ready(ks)
        J.new_ref(ks)[...]
        J.new_ref(k)[...]
        J.new_ref(ks)[0]
    """,
    "vmap": """
        J.vmap(lambda k:k)(ks)
        J.vmap(lambda k:r.normal(k))(ks)
        J.vmap(lambda k:k,out_axes=1)(kss)
        J.vmap(lambda k,x:(k,x),in_axes=(None,0))(k,x)
        J.vmap(lambda k,x:(k,x),in_axes=(None,0),out_axes=(None,0))(k,x)
        J.vmap(lambda k,j: j==k, in_axes=(0,None))(ks,k)
        J.vmap(lambda i,k: k[i], in_axes=(0,None))(jnp.arange(3),ks)
        J.vmap(lambda i,k: k[i])(jnp.zeros(2,int),kss)
        J.vmap(lambda k,n: k.at[0].set(n))(kss,kss[:,1])
        J.vmap(lambda a,b: jnp.where(a,b,k))(m,ks)
    """,
    "control flow": """
        lax.scan(lambda c,_:(r.split(c)[0],r.bits(c)),k,None,length=3)
        lax.scan(lambda c,a:(c,a),k,ks)
        lax.scan(lambda c,a:(a,c),k,ks)
        lax.scan(lambda c,a:(r.fold_in(a,1),c),k,ks,reverse=True)
        lax.scan(lambda c,a:(c+1,r.bits(a)),0,ks,unroll=3)
        lax.map(r.normal,ks)
        lax.map(r.normal,ks,batch_size=2)
        lax.fori_loop(0,3,lambda i,c:r.fold_in(c,i),k)
        lax.while_loop(lambda c:c[0]<3,lambda c:(c[0]+1,r.split(c[1])[1]),(0,k))
        lax.cond(True,lambda k:k,lambda k:r.fold_in(k,1),k)
        lax.cond(jnp.array(False),lambda:k,lambda:ks[0])
        lax.switch(1,[lambda k:k,lambda k:r.split(k)[0]],k)
        lax.platform_dependent(k,cpu=lambda k:k)
    """,
    "lax": """
        lax.select(True,k,ks[0])
        lax.select(m,ks,ks[::-1])
        lax.select_n(m,ks,ks)
        lax.select_n(jnp.array([0,2,1]),ks,ks,ks)
        lax.concatenate([ks,ks],0)
        lax.dynamic_slice(ks,(1,),(2,))
        lax.dynamic_slice_in_dim(ks,1,2)
        lax.dynamic_index_in_dim(ks,1)
        lax.dynamic_update_slice(ks,ks[:1],(1,))
        lax.dynamic_update_index_in_dim(ks,k,1,0)
        lax.dynamic_update_slice_in_dim(ks,ks[:1],1,0)
        lax.slice(ks,(0,),(2,))
        lax.slice(ks,(0,),(3,),(2,))
        lax.slice_in_dim(ks,1,3)
        lax.index_in_dim(ks,1)
        lax.rev(ks,(0,))
        lax.transpose(kss,(1,0))
        lax.reshape(kss,(6,))
        lax.squeeze(ks[None],(0,))
        lax.expand_dims(ks,(0,))
        lax.broadcast(ks,(2,))
        lax.broadcast_in_dim(ks,(2,3),(1,))
        lax.broadcast_in_dim(k,(2,3),())
        lax.broadcast_to_rank(ks,2)
        lax.collapse(kss,0)
        lax.gather(ks,jnp.array([[0],[2]]),lax.GatherDimensionNumbers((),(0,),(0,)),(1,))
        lax.scatter(ks,jnp.array([[0],[2]]),ks[:2],lax.ScatterDimensionNumbers((),(0,),(0,)))
        lax.split(ks,(1,2))
        lax.stack([k,k])
        lax.unstack(ks)
        lax.tile(ks,(2,))
        lax.full((2,),k)
        lax.full_like(ks,k)
        lax.convert_element_type(ks,k.dtype)
        lax.stop_gradient(ks)
        lax.optimization_barrier(ks)
        lax.optimization_barrier((ks,x))
        lax.eq(ks,ks)
        lax.ne(ks,ks)
        lax.full_like(ks,7)
    """,
    "moving": """
        jnp.where(m,ks,k)
        jnp.where(ks==k)
        jnp.select([m],[ks],k)
        jnp.choose(jnp.array([0,1,0]),[ks,ks[::-1]])
        jnp.piecewise(ks,[m],[k,k])
        jnp.concatenate([ks,ks])
        jnp.concatenate([kss,kss],axis=1)
        jnp.concatenate([kss,kss],axis=None)
        jnp.stack([ks,ks],axis=1)
        jnp.stack([k,k])
        jnp.vstack([ks,ks])
        jnp.hstack([ks,ks])
        jnp.dstack([ks,ks])
        jnp.column_stack([ks,ks])
        jnp.block([ks,ks])
        jnp.append(ks,k)
        jnp.append(ks,ks)
        jnp.insert(ks,1,k)
        jnp.delete(ks,1)
        jnp.split(ks,3)
        jnp.array_split(ks,2)
        jnp.unstack(ks)
        jnp.roll(ks,1)
        jnp.roll(kss,1,axis=1)
        jnp.rot90(kss)
        jnp.flip(ks)
        jnp.fliplr(kss)
        jnp.tile(ks,2)
        jnp.repeat(ks,2)
        jnp.repeat(ks,np.array([1,0,2]))
        jnp.take(ks,ii)
        jnp.take(ks,5)
        jnp.take(ks,ii,mode='clip')
        jnp.take(ks,ii,mode='fill')
        jnp.take(ks,ii,mode='fill',fill_value=0)
        jnp.take(kss,ii,axis=1)
        jnp.take_along_axis(ks,np.array([2,0]),0)
        jnp.put(ks,0,k,inplace=False)
        jnp.put_along_axis(ks,np.array([0]),k,0,inplace=False)
        jnp.place(ks,m,k[None],inplace=False)
        jnp.fill_diagonal(kss,k,inplace=False)
        jnp.broadcast_to(k,(2,2))
        jnp.broadcast_arrays(ks,k)
        jnp.expand_dims(ks,(0,1))
        jnp.squeeze(ks[None])
        jnp.reshape(kss,-1)
        jnp.moveaxis(kss,0,1)
        jnp.swapaxes(kss,0,1)
        jnp.rollaxis(kss,1)
        jnp.atleast_1d(k)
        jnp.atleast_2d(k)
        jnp.atleast_3d(ks)
        jnp.diag(kss)
        jnp.diagonal(kss)
        jnp.tril(kss)
        jnp.triu(kss)
        jnp.resize(ks,5)
        jnp.resize(ks,(0,))
        jnp.ix_(ks)
        jnp.piecewise(ks,[ks==k],[k,k])
        jnp.diagflat(ks)
        jnp.diagflat(ks,1)
        jnp.resize(ks,(2,2))
    """,
    "numpy": """
        jnp.equal(ks,k)
        jnp.not_equal(ks,k)
        jnp.array_equal(ks,ks)
        jnp.array_equal(ks,ks[:2])
        jnp.array_equiv(ks,k)
        jnp.isclose(ks,ks)
        jnp.allclose(ks,ks)
        jnp.isin(ks,k)
        jnp.isnan(ks)
        jnp.isfinite(ks)
        jnp.real(ks)
        jnp.imag(ks)
        jnp.conj(ks)
        jnp.iscomplexobj(ks)
        jnp.isrealobj(ks)
        jnp.isscalar(k)
        jnp.size(ks)
        jnp.ndim(ks)
        jnp.shape(ks)
        jnp.pad(ks,1,mode='edge')
        jnp.pad(ks,1,mode='wrap')
        jnp.pad(ks,1,mode='reflect')
        jnp.apply_along_axis(lambda a:a[0],0,kss)
        jnp.vectorize(r.normal)(ks)
        jnp.vectorize(r.normal,signature='()->()')(ks)
        jnp.nan_to_num(ks)
        jnp.isclose(ks,k)
        jnp.allclose(ks,k)
        jnp.einsum('ij->ji',kss)
    """,
    "derivatives": """
        J.grad(lambda k: r.normal(k),allow_int=True)(k)
        J.grad(lambda x,k: x*r.normal(k))(1.,k)
        J.grad(lambda x,k: x*r.normal(k),argnums=(0,1),allow_int=True)(1.,k)
        J.value_and_grad(lambda x,k: x*r.normal(k))(1.,k)
        J.jvp(lambda k:k,(k,),(np.zeros((),J.dtypes.float0),))
        J.vjp(lambda k:k,k)[0]
        J.vjp(lambda k:r.normal(k),k)[1](1.)
        J.vjp(lambda k:k,k)[1](np.zeros((),J.dtypes.float0))
        J.vjp(lambda x: k, 1.)[0]
        J.linearize(lambda x: x*r.normal(k),1.)[0]
        J.jacfwd(lambda x: x*r.normal(k,(2,)))(1.)
        J.hessian(lambda x: x**2*r.normal(k))(1.)
        J.grad(J.checkpoint(lambda x,k: x*r.normal(k)))(1.,k)
    """,
    "functions of keys": """
        r.split(k,num=(2,))
        r.fold_in(k,1.5)
        r.fold_in(k,True)
        r.fold_in(k,np.int64(3))
        r.fold_in(k,jnp.uint8(3))
        r.fold_in(k,jnp.float32(2.5))
        r.normal(jnp.zeros(2,'uint32'))
        r.normal(np.zeros(2,'uint32'))
        r.key(True)
        r.key(-2**63)
        r.key(jnp.int8(3))
        r.key(0,impl=k.dtype)
        r.key(0,impl=r.key_impl(k))
        r.key(0,dtype=k.dtype)
        r.PRNGKey(0)
        r.key_data(k)
        r.key_data(ks)
        r.key_data(r.PRNGKey(0))
        r.key_data(r.key_data(ks))
        r.key_impl(k)
        r.key_impl(r.PRNGKey(0))
        r.wrap_key_data(r.key_data(ks),impl=impl)
        r.wrap_key_data(r.key_data(k),impl=impl)
        r.wrap_key_data(r.key_data(k),dtype=k.dtype)
        r.wrap_key_data(r.key_data(k))
        r.wrap_key_data(np.asarray(r.key_data(ks)),impl=impl)
        r.clone(k)
        r.clone(ks)
        r.clone(r.PRNGKey(0))
        r.clone(0)
        r.key_dtype(impl)==k.dtype
        r.key_dtype()
        r.choice(k,ks)
        r.choice(k,kss,axis=1)
        r.permutation(k,kss,axis=1)
        r.clone(x)
    """,
}
RAISING = {
    ("operators", "TypeError"): """
        iter(k)
        k==0
        ks==0
        ks!=0
        ks==x
        k<k
        k>k
        k<=k
        k>=k
        k+k
        k+1
        1+k
        k-k
        k*2
        k/2
        k//2
        k%2
        k**2
        k&k
        k|k
        k^k
        ~k
        -k
        abs(k)
        divmod(k,2)
        round(k)
        k<<1
        k>>1
        x+ks
        ks+x
    """,
    ("operators", "ValueError"): """
        k@k
    """,
    ("indices", "TypeError"): """
        list(k)
        len(k)
        ks['a']
        ks[1.0]
        ks[ks]
        ks[k]
    """,
    ("indices", "IndexError"): """
        ks[:,0]
        k[0]
    """,
    ("updates", "TypeError"): """
        ks.at[0].add(k)
        ks.at[0].multiply(2)
        ks.at[0].max(k)
        ks.at[0].min(k)
        ks.at[0].power(2)
        ks.at[0].divide(k)
        ks.at[0].subtract(k)
        ks.at[0].set(0)
        ks.at[0].set(1.0)
        ks.at[0].set(np.uint32(3))
    """,
    ("updates", "ValueError"): """
        kss.at[:,1].set(ks)
        x.at[0].set(k)
    """,
    ("conversions", "TypeError"): """
        ks==jnp.arange(3)
        np.float32(2)*k
        np.ones(3)*ks
        np.ones(3)+ks
        np.ones(3)==ks
        hash(k)
        bool(k)
        bool(ks)
        int(k)
        float(k)
        complex(k)
        operator.index(k)
        np.asarray(k)
        np.array(ks)
        np.asarray(ks,dtype='uint32')
        np.asarray(ks,dtype=object)
        np.add(ks,1)
        np.ravel(kss)
        np.concatenate([ks,ks])
        np.stack([ks,ks])
        f"{k:>3}"
    """,
    ("conversions", "NotImplementedError"): """
        np.sum(ks)
        np.mean(ks)
    """,
    ("methods", "TypeError"): """
        k.__array__()
        ks.__setitem__(0,k)
        kss.reshape(4)
    """,
    ("methods", "NotImplementedError"): """
        ks.astype('uint32')
        ks.astype(ks.dtype)
        ks.view('uint32')
        k.item()
        ks.item()
        kss.mT
        ks.mT
        kss.real
        k.real
        k.imag
        ks.repeat(2)
        ks.sum()
        ks.mean()
        ks.max()
        ks.min()
        ks.prod()
        ks.std()
        ks.var()
        ks.any()
        ks.all()
        ks.argmax()
        ks.argsort()
        ks.sort()
        ks.cumsum()
        ks.cumprod()
        ks.dot(ks)
        ks.clip(0,1)
        ks.conj()
        ks.round()
        ks.searchsorted(k)
        ks.diagonal()
        kss.diagonal()
        kss.trace()
        ks.nonzero()
        ks.compress(np.array([True,False,True]))
        ks.choose(ks)
        ks.byteswap()
        ks.ptp()
        ks.argpartition(1)
    """,
    ("methods", "AttributeError"): """
        ks.tolist()
        k.tolist()
        ks.tobytes()
        ks.weak_type
        ks.__dlpack__()
        ks.__dlpack_device__()
        ks.foo
        ks.fill(0)
        ks.put(0,k)
        ks.partition(1)
    """,
    ("methods", "ValueError"): """
        ks.squeeze(0)
    """,
    ("creation", "ValueError"): """
        jnp.array([k,0])
        jnp.asarray(ks,dtype='uint32')
        jnp.astype(ks,'uint32')
        jnp.eye(2,dtype=k.dtype)
    """,
    ("creation", "TypeError"): """
        jnp.arange(3,dtype=k.dtype)
    """,
    ("dtypes", "TypeError"): """
        np.dtype(ks.dtype)
        jnp.isdtype(ks.dtype,'numeric')
        jnp.promote_types(ks.dtype,ks.dtype)
        jnp.promote_types(ks.dtype,'float32')
        jnp.can_cast(ks.dtype,ks.dtype)
        jnp.finfo(ks.dtype)
        J.dtypes.scalar_type_of(ks)
    """,
    ("dtypes", "ValueError"): """
        J.dtypes.result_type(ks,0)
        jnp.iinfo(ks.dtype)
        J.dtypes.canonicalize_dtype(ks.dtype)
    """,
    ("devices", "NotImplementedError"): """
        ks.to_device(J.devices()[0])
    """,
    ("devices", "ValueError"): """
        J.make_array_from_callback((3,),ks.sharding,lambda i: r.key_data(ks))
        J.device_put(ks,J.NamedSharding(mesh,J.P('a',None)))
    """,
    ("devices", "TypeError"): """
        J.vmap(lambda k: lax.psum(k,'i'),axis_name='i')(ks)
        J.shard_map(lambda k: lax.psum(k,'a'),mesh=mesh,in_specs=J.P('a'),out_specs=J.P())(ks)
        J.shard_map(lambda k: lax.pmax(k,'a'),mesh=mesh,in_specs=J.P('a'),out_specs=J.P())(ks)
        J.shard_map(lambda k: lax.psum_scatter(k,'a',tiled=True),mesh=mesh,in_specs=J.P('a'),out_specs=J.P('a'))(ks)
    """,
    ("programs", "AttributeError"): """
        J.ShapeDtypeStruct((2,),k.dtype).nbytes
        J.custom_jvp(lambda k:k)(k)
    """,
    ("programs", "TypeError"): """
        J.jit(lambda k:k+1)(k)
        J.jit(lambda k:k).lower(ks).compile()(r.key_data(ks))
    """,
    ("programs", "ValueError"): """
        J.jit(lambda k:k,static_argnums=0)(k)
    """,
    ("vmap", "ValueError"): """
        J.vmap(lambda k:r.normal(k),in_axes=1)(kss)
        J.vmap(lambda k:k)(k)
        J.vmap(lambda k,j:k,in_axes=(0,0))(ks,jnp.arange(4))
    """,
    ("control flow", "TypeError"): """
        lax.scan(lambda c,a:(r.key_data(c),None),k,ks)
        lax.fori_loop(0,3,lambda i,c:r.key_data(c),k)
        lax.cond(True,lambda k:k,lambda k:r.key_data(k),k)
        lax.associative_scan(lambda a,b:a,ks)
    """,
    ("lax", "TypeError"): """
        lax.select(m,ks,k)
        lax.pad(ks,0,[(1,1,0)])
        lax.scatter_add(ks,jnp.array([[0],[2]]),ks[:2],lax.ScatterDimensionNumbers((),(0,),(0,)))
        lax.iota(k.dtype,3)
        lax.lt(ks,ks)
        lax.add(ks,ks)
        lax.neg(ks)
        lax.max(ks,ks)
        lax.clamp(k,k,k)
        lax.sort(ks)
        lax.cumsum(ks)
        lax.reduce_sum(ks,(0,))
        lax.reduce_and(ks,(0,))
        lax.reduce_precision(ks,3,3)
        lax.nextafter(ks,ks)
        lax.random_gamma_grad(k,x)
    """,
    ("lax", "ValueError"): """
        lax.convert_element_type(ks,'uint32')
        lax.convert_element_type(x,k.dtype)
        lax.bitcast_convert_type(ks,'uint32')
        lax.bitcast_convert_type(ks,k.dtype)
        lax.bitcast_convert_type(r.key_data(ks),k.dtype)
        lax.sort_key_val(x,ks)
        lax.sort((x,ks),num_keys=1)
        lax.argmax(ks,0,'int32')
        lax.top_k(ks,1)
        lax.reduce_max(ks,(0,))
        lax.rng_uniform(k,k,())
    """,
    ("lax", "JaxRuntimeError"): """
        lax.reduce(ks,k,lambda a,b:a,(0,))
    """,
    ("lax", "AttributeError"): """
        lax.zeros_like_array(ks)
    """,
    ("moving", "ValueError"): """
        jnp.where(m,ks,0)
        jnp.where(m,k,x)
        jnp.select([m],[ks])
        jnp.concatenate([ks,x])
        jnp.broadcast_to(ks,(2,2))
    """,
    ("moving", "TypeError"): """
        jnp.where(ks)
        jnp.nonzero(ks)
        jnp.trace(kss)
    """,
    ("numpy", "TypeError"): """
        jnp.equal(ks,0)
        jnp.equal(ks,x)
        jnp.array_equal(ks,x)
        jnp.isclose(ks,x)
        jnp.unique(ks)
        jnp.sort(ks)
        jnp.argsort(ks)
        jnp.lexsort((ks,))
        jnp.searchsorted(ks,k)
        jnp.sum(ks)
        jnp.count_nonzero(ks)
        jnp.max(ks)
        jnp.mean(ks)
        jnp.cumsum(ks)
        jnp.sin(ks)
        jnp.abs(ks)
        jnp.sign(ks)
        jnp.logical_not(ks)
        jnp.logical_and(ks,ks)
        jnp.bitwise_not(ks)
        jnp.invert(ks)
        jnp.bitwise_count(ks)
        jnp.clip(ks,k,k)
        jnp.maximum(ks,ks)
        jnp.add(ks,ks)
        jnp.add.reduce(ks)
        jnp.diff(ks)
        jnp.ediff1d(ks)
        jnp.packbits(ks)
        jnp.array_repr(ks)
        jnp.array_str(ks)
        jnp.from_dlpack(ks)
        jnp.frombuffer(ks)
        jnp.ceil(ks)
        jnp.floor(ks)
        jnp.trunc(ks)
        jnp.rint(ks)
        jnp.std(ks)
        jnp.var(ks)
        jnp.prod(ks,3)
    """,
    ("numpy", "ValueError"): """
        jnp.any(ks)
        jnp.all(ks)
        jnp.argmax(ks)
        jnp.pad(ks,1)
    """,
    ("derivatives", "TypeError"): """
        J.grad(lambda k: r.normal(k))(k)
        J.jvp(lambda k:r.normal(k),(k,),(k,))
    """,
    ("functions of keys", "ValueError"): """
        r.split(ks)
        r.fold_in(ks,1)
        r.fold_in(k,k)
        r.normal(ks)
        r.normal(jnp.zeros((2,2),'uint32'))
        r.key(None)
        r.key(0,impl='')
        r.key(0,dtype='uint32')
        r.key(0,impl='rbg',dtype=k.dtype)
        r.PRNGKey(0,impl='nope')
        r.key_dtype('nope')
        r.bits(k,dtype='int32')
        r.bits(k,dtype=k.dtype)
        r.normal(k,dtype=k.dtype)
        r.uniform(k,minval=k)
        r.choice(k,ks,(2,),replace=False)
        r.permutation(k,ks)
        r.permutation(k,kss,axis=1,independent=True)
        r.categorical(k,ks)
    """,
    ("functions of keys", "TypeError"): """
        r.split(0)
        r.split(x)
        r.split(k,2.0)
        r.split(k,'a')
        r.fold_in(k,x)
        r.normal(0)
        r.normal(None)
        r.normal(x)
        r.normal(np.zeros(3,'uint32'))
        r.normal([0,0])
        r.normal((0,0))
        r.key(k)
        r.key(ks)
        r.key(0.5)
        r.key('a')
        r.key([0])
        r.key(np.array([1,2]))
        r.key(0,impl=3)
        r.key(0,impl=k)
        r.PRNGKey(k)
        r.PRNGKey(x)
        r.key_data(0)
        r.key_data(x)
        r.key_data(J.ShapeDtypeStruct((),k.dtype))
        r.key_impl(x)
        r.key_impl(0)
        r.key_impl(None)
        r.wrap_key_data(x,impl=impl)
        r.wrap_key_data(k,impl=impl)
        r.wrap_key_data(0,impl=impl)
        r.wrap_key_data([0,0],impl=impl)
        r.wrap_key_data(jnp.zeros((3,7),'uint32'),impl=impl)
        r.choice(k,k)
        r.permutation(k,k)
        r.bernoulli(k,k)
        r.normal(k,k)
        r.normal(k,ks)
    """,
    ("functions of keys", "OverflowError"): """
        r.fold_in(k,-1)
        r.fold_in(k,2**32)
        r.fold_in(k,2**40)
        r.key(2**64)
        r.key(2**63)
        r.key(2**70)
    """,
}


def environment(jax, impl, raw=False):
    """Names that the expressions may use."""
    sub = lambda name: importlib.import_module(f"{jax.__name__}.{name}")  # noqa: E731
    k = jax.random.key(3, impl=impl)
    keys = dict(k=k, ks=jax.random.split(k, 3), kss=jax.random.split(k, (2, 3)))
    if raw:
        keys = {name: jax.random.key_data(x) for name, x in keys.items()}
    mesh = jax.make_mesh((1,), ("a",), axis_types=(jax.sharding.AxisType.Auto,))
    modules = dict(J=jax, jnp=sub("numpy"), lax=sub("lax"), r=jax.random, np=np, copy=copy, pickle=pickle)
    values = dict(m=sub("numpy").array([True, False, True]), x=sub("numpy").arange(3.0), ii=np.array([0, 2]))
    return modules | keys | values | dict(i=np.int32(1), mesh=mesh, impl=impl, operator=operator)


def ending(jax, expression, impl, raw=False):
    """The value of an expression, or its text if it is a dtype; or the classes of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = compare.outcome(lambda: eval(expression, environment(jax, impl, raw)))
    if result.error:
        return Refused(kind.removeprefix("builtins.") for kind in compare._bases(result.error))
    # The classes of dtypes have other names.
    return repr(result.value) if type(result.value) is type(jax.random.key(0).dtype) else result.value


class Refused(list):
    """The names of the classes of an error."""


def cells(table):
    return [(theme, line.strip()) for theme, text in table.items() for line in text.strip().splitlines()]


def of_a_part(expression, theme):
    # Raw keys are those of the default generator.
    is_other = theme != "functions of keys" and compare.sampled(expression, 2)
    return "philox2x32" if is_other else "threefry2x32"


@pytest.mark.parametrize("theme", WORKING)
def test_operations_on_arrays_of_keys(theme):
    for _, expression in cells({theme: WORKING[theme]}):
        impl = of_a_part(expression, theme)

        def works(jax, expression=expression, impl=impl):
            end = ending(jax, expression, impl)
            assert not isinstance(end, Refused), (expression, end)
            return end

        compare.same(works)


@pytest.mark.parametrize(("theme", "error"), RAISING)
def test_operations_that_arrays_of_keys_refuse(theme, error):
    for _, expression in cells({theme: RAISING[theme, error]}):
        impl = of_a_part(expression, theme)

        def raises(jax, expression=expression, impl=impl):
            end = ending(jax, expression, impl)
            assert isinstance(end, Refused) and end[0] == error, (expression, end)
            return end

        compare.same(raises)


def test_functions_of_keys_take_raw_keys():
    table = {"": WORKING["functions of keys"] + "".join(v for (t, _), v in RAISING.items() if t == "functions of keys")}
    for _, expression in cells(table):
        if expression not in ("r.uniform(k,minval=k)", "r.fold_in(k,k)"):
            compare.same(lambda jax, expression=expression: ending(jax, expression, "threefry2x32", raw=True))


def test_jaxprs_of_functions_that_fill_keys():
    for function in ("tril", "triu", "diagflat", "isclose", "floor", "resize", "piecewise"):

        def program(jax, jnp, function=function):
            ks = jax.random.split(jax.random.key(3), (2, 3))
            args = {"isclose": (ks[0],), "resize": ((0,),), "piecewise": ([ks == ks], [ks[0, 0], ks[0, 1]])}
            call = lambda ks: getattr(jnp, function)(ks, *args.get(function, ()))  # noqa: E731
            return "" if function == "floor" else compare.normal(str(jax.make_jaxpr(call)(ks)))

        compare.same_printed("jaxpr", lambda side, program=program: compare.run_on(side, program), program)


def test_arrays_of_keys_are_unpacked():
    def program(jax):
        ks = jax.random.split(jax.random.key(3), (3, 2))
        first, *rest = ks
        many = list(jax.random.split(jax.random.key(1), 250))
        return first, rest, list(ks[:0]), [list(k) for k in ks], many[249], len(many)

    compare.same(program)


def test_unpacking_uses_no_key():
    def program(jax, again):
        with jax.debug_key_reuse(True):
            ks = jax.random.split(jax.random.key(3), 3)
            first, *rest = ks
            drawn = [jax.random.normal(first), jax.random.normal(ks[0]), jax.random.normal(rest[1])]
            return drawn, again and jax.random.normal(first)

    compare.same(lambda jax: program(jax, False))
    compare.same(lambda jax: program(jax, True), raises=True)
