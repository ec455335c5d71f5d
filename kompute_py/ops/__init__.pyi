"""Every function of `kp.ops` by the module that has it, in the order of the page of all functions.

The one list of them: checkers of types read it, and so does Python when `kp.ops` is first used.
"""

# ruff: noqa: I001
import kompute_py

from .._builders.elementwise import elementwise as elementwise
from .._builders.reduction import reduction as reduction
from .._builders.scan import scan as scan
from ._values.elements import (
    absolute as absolute,
    add as add,
    angle as angle,
    arccos as arccos,
    arccosh as arccosh,
    arcsin as arcsin,
    arcsinh as arcsinh,
    arctan as arctan,
    arctan2 as arctan2,
    arctanh as arctanh,
    astype as astype,
    bitwise_and as bitwise_and,
    bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor,
    ceil as ceil,
    clip as clip,
    conjugate as conjugate,
    copysign as copysign,
    cos as cos,
    cosh as cosh,
    degrees as degrees,
    divide as divide,
    equal as equal,
    erf as erf,
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    floor as floor,
    floor_divide as floor_divide,
    fmax as fmax,
    fmin as fmin,
    fmod as fmod,
    gcd as gcd,
    greater as greater,
    greater_equal as greater_equal,
    hypot as hypot,
    imag as imag,
    invert as invert,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    left_shift as left_shift,
    less as less,
    less_equal as less_equal,
    log as log,
    log10 as log10,
    log1p as log1p,
    log2 as log2,
    logaddexp as logaddexp,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    maximum as maximum,
    minimum as minimum,
    multiply as multiply,
    negative as negative,
    nextafter as nextafter,
    not_equal as not_equal,
    positive as positive,
    power as power,
    radians as radians,
    real as real,
    reciprocal as reciprocal,
    remainder as remainder,
    right_shift as right_shift,
    rint as rint,
    round as round,
    sigmoid as sigmoid,
    sign as sign,
    signbit as signbit,
    sin as sin,
    sinh as sinh,
    sqrt as sqrt,
    square as square,
    subtract as subtract,
    tan as tan,
    tanh as tanh,
    trunc as trunc,
    where as where,
)
from ._places.making import (
    arange as arange,
    eye as eye,
    full as full,
    linspace as linspace,
)
from ._values.reductions import (
    all as all,
    any as any,
    argmax as argmax,
    argmin as argmin,
    count_nonzero as count_nonzero,
    dot as dot,
    max as max,
    mean as mean,
    min as min,
    norm as norm,
    prod as prod,
    std as std,
    sum as sum,
    var as var,
)
from ._values.nans import (
    nanargmax as nanargmax,
    nanargmin as nanargmin,
    nancumprod as nancumprod,
    nancumsum as nancumsum,
    nanmax as nanmax,
    nanmean as nanmean,
    nanmin as nanmin,
    nanprod as nanprod,
    nanstd as nanstd,
    nansum as nansum,
    nanvar as nanvar,
)
from ._values.spreads import (
    average as average,
    diff as diff,
    ptp as ptp,
)
from ._values.scans import (
    cummax as cummax,
    cummin as cummin,
    cumprod as cumprod,
    cumsum as cumsum,
)
from ._orders.searching import (
    bin_counts as bin_counts,
    int_counts as int_counts,
    nonzero_places as nonzero_places,
    run_starts as run_starts,
    searchsorted as searchsorted,
    selected as selected,
)
from ._orders.counted import (
    bincount as bincount,
    compress as compress,
    extract as extract,
    flatnonzero as flatnonzero,
    histogram as histogram,
    nonzero as nonzero,
    unique as unique,
)
from ._orders.quantiles import (
    median as median,
    nanmedian as nanmedian,
    nanpercentile as nanpercentile,
    nanquantile as nanquantile,
    percentile as percentile,
    quantile as quantile,
)
from ._orders.sets import isin as isin
from ._orders.scattering import (
    scatter_add as scatter_add,
    scatter_max as scatter_max,
    scatter_min as scatter_min,
    scatter_mul as scatter_mul,
)
from ._orders.sorting import (
    argpartition as argpartition,
    argsort as argsort,
    partition as partition,
    segmented_sort as segmented_sort,
    sort as sort,
    sort_by_key as sort_by_key,
    topk as topk,
)
from ._places.packing import (
    pack_int4 as pack_int4,
    packbits as packbits,
    unpack_int4 as unpack_int4,
    unpackbits as unpackbits,
)
from ._places.moving import (
    ascontiguousarray as ascontiguousarray,
    broadcast_to as broadcast_to,
    diagonal as diagonal,
    flip as flip,
    moveaxis as moveaxis,
    roll as roll,
    rot90 as rot90,
    swapaxes as swapaxes,
    take as take,
    tile as tile,
    transpose as transpose,
)
from ._places.joining import concatenate as concatenate, stack as stack
from ._places.repeating import repeat as repeat
from ._places.splitting import (
    array_split as array_split,
    hsplit as hsplit,
    split as split,
    vsplit as vsplit,
)
from ._linear.einsum import (
    einsum as einsum,
    inner as inner,
    outer as outer,
    tensordot as tensordot,
    trace as trace,
)
from ._linear.products import (
    kron as kron,
    matrix_norm as matrix_norm,
    vdot as vdot,
)
from ._places.indexing import (
    pad as pad,
    put as put,
    put_along_axis as put_along_axis,
    take_along_axis as take_along_axis,
    tril as tril,
    triu as triu,
)
from ._linear.matrices import matmul as matmul
from ._linear.network import (
    gelu as gelu,
    gelu_tanh as gelu_tanh,
    layer_norm as layer_norm,
    leaky_relu as leaky_relu,
    log_softmax as log_softmax,
    logsumexp as logsumexp,
    relu as relu,
    rms_norm as rms_norm,
    silu as silu,
    softmax as softmax,
)
from ._signals.filters import (
    convolve as convolve,
    convolve1d as convolve1d,
    correlate as correlate,
    correlate1d as correlate1d,
    gaussian_filter1d as gaussian_filter1d,
    uniform_filter1d as uniform_filter1d,
)
from ._signals.windows import (
    gaussian_filter as gaussian_filter,
    maximum_filter as maximum_filter,
    median_filter as median_filter,
    minimum_filter as minimum_filter,
    prewitt as prewitt,
    rank_filter as rank_filter,
    sobel as sobel,
    uniform_filter as uniform_filter,
)
from ._signals.resizing import resize as resize
from ._signals.pictures import (
    hsv_to_rgb as hsv_to_rgb,
    linear_to_srgb as linear_to_srgb,
    premultiply_alpha as premultiply_alpha,
    rgb_to_gray as rgb_to_gray,
    rgb_to_hsv as rgb_to_hsv,
    rgb_to_ycbcr as rgb_to_ycbcr,
    srgb_to_linear as srgb_to_linear,
    ycbcr_to_rgb as ycbcr_to_rgb,
)
from ._signals.fourier import (
    fft as fft,
    fft2 as fft2,
    fftconvolve as fftconvolve,
    fftfreq as fftfreq,
    fftn as fftn,
    fftshift as fftshift,
    ifft as ifft,
    ifft2 as ifft2,
    ifftn as ifftn,
    ifftshift as ifftshift,
    irfft as irfft,
    irfft2 as irfft2,
    irfftn as irfftn,
    rfft as rfft,
    rfft2 as rfft2,
    rfftfreq as rfftfreq,
    rfftn as rfftn,
)

def __getattr__(name: str) -> kompute_py.OpLibrary: ...  # the library of that name

# NumPy's other names.
abs = absolute
acos = arccos
acosh = arccosh
amax = max
amin = min
asin = arcsin
asinh = arcsinh
atan = arctan
atan2 = arctan2
atanh = arctanh
bitwise_invert = invert
bitwise_left_shift = left_shift
bitwise_not = invert
bitwise_right_shift = right_shift
concat = concatenate
conj = conjugate
mod = remainder
permute_dims = transpose
pow = power
true_divide = divide
