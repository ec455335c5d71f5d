// Colours the shaders of %%glsl, %%hlsl and %%slang cells in JupyterLab 4 and Notebook 7.
//
// A federated extension of JupyterLab is a container with `init` and `get`. This one is written by hand: it has no
// packages of its own and takes CodeMirror and the registry of editor extensions from JupyterLab.
(() => {
  "use strict";

  const MAGIC = /^%%(glsl|hlsl|slang)(?=\s|$)/;

  const KEYWORDS = words(`break case continue default discard do else for if return switch while struct class enum
    interface namespace using import module extension typedef typealias property get set const static inline extern
    public private internal precise invariant flat smooth noperspective centroid sample in out inout uniform varying
    attribute buffer shared groupshared globallycoherent coherent volatile restrict readonly writeonly layout precision
    lowp mediump highp register packoffset cbuffer tbuffer ConstantBuffer row_major column_major unorm snorm nointerpolation
    let var func where as is this This throw try catch associatedtype generic __generic operator new null
    true false`);
  const FUNCTIONS = words(`abs acos acosh all any asin asinh atan atan2 atanh barrier bitCount bitfieldExtract
    bitfieldInsert bitfieldReverse ceil clamp clip cos cosh countbits cross degrees determinant distance dot equal exp
    exp2 faceforward findLSB findMSB firstbithigh firstbitlow floatBitsToInt floatBitsToUint floor fma fmod frac fract
    frexp fwidth greaterThan greaterThanEqual imageAtomicAdd imageLoad imageSize imageStore intBitsToFloat inverse
    inversesqrt isfinite isinf isnan ldexp length lerp lessThan lessThanEqual log log10 log2 mad matrixCompMult max
    memoryBarrier memoryBarrierBuffer memoryBarrierImage memoryBarrierShared groupMemoryBarrier min mix mod modf mul
    normalize not notEqual outerProduct packHalf2x16 pow radians rcp reflect refract reversebits round roundEven rsqrt
    saturate sign sin sincos sinh smoothstep sqrt step tan tanh texelFetch texture textureLod textureSize transpose trunc
    uintBitsToFloat unpackHalf2x16 asfloat asint asuint asdouble atomicAdd atomicAnd atomicCompSwap atomicExchange
    atomicMax atomicMin atomicOr atomicXor AllMemoryBarrier AllMemoryBarrierWithGroupSync DeviceMemoryBarrier
    DeviceMemoryBarrierWithGroupSync GroupMemoryBarrier GroupMemoryBarrierWithGroupSync InterlockedAdd InterlockedAnd
    InterlockedCompareExchange InterlockedExchange InterlockedMax InterlockedMin InterlockedOr InterlockedXor`);
  const FAMILIES = /^(subgroup[A-Z]\w*|Wave[A-Z]\w*|Quad[A-Z]\w*|gl_\w+|SV_\w+|numthreads|shader|vk|local_size_[xyz](_id)?)$/;
  const TYPES = new RegExp("^(?:" + [
    "void|bool|double|half|float|u?int|string|dword|vector|matrix|[bdiu]?vec[234]|[df]?mat[234](?:x[234])?",
    "(?:bool|double|half|float|u?int|min16\\w+)[1-4]?(?:x[1-4])?|(?:u?int|float)(?:8|16|32|64)_t[1-4]?",
    "[iu]?(?:image|sampler|texture)(?:[123]D\\w*|Cube\\w*|Buffer)|sampler(?:Shadow)?",
    "(?:RW|RasterizerOrdered|Append|Consume)?(?:StructuredBuffer|ByteAddressBuffer|Buffer|Texture[123]D\\w*|TextureCube\\w*)",
    "Sampler(?:Comparison)?State|ParameterBlock|Optional|Tuple",
  ].join("|") + ")$");

  function words(text) {
    return new Set(text.split(/\s+/));
  }

  // The tokens of all three languages: they share C's grammar of words, numbers and comments.
  const tokens = {
    startState: () => ({ begin: true, comment: false }),
    copyState: (state) => ({ ...state }),
    token(stream, state) {
      if (state.begin) {
        state.begin = false;
        if (stream.match(MAGIC)) {
          stream.skipToEnd();
          return "meta";
        }
      }
      if (state.comment || stream.match("/*")) {
        state.comment = !stream.match(/^.*?\*\//);
        if (state.comment) stream.skipToEnd();
        return "comment";
      }
      if (stream.match("//")) {
        stream.skipToEnd();
        return "comment";
      }
      if (stream.sol() && stream.match(/^\s*#\s*\w*/)) return "meta";
      if (stream.eatSpace()) return null;
      if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
      if (stream.match(/^(?:0[xX][\da-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?:[uU]?[lL]{0,2}|[lL]?[fFhH])?/)) {
        return "number";
      }
      if (stream.match(/^\w+/)) {
        const word = stream.current();
        if (KEYWORDS.has(word)) return "keyword";
        if (TYPES.test(word)) return "variableName.standard";
        if (FUNCTIONS.has(word) || FAMILIES.test(word)) return "variableName.special";
        return "variableName";
      }
      if (stream.match(/^[-+*/%=<>!&|^~?:]+/)) return "operator";
      if (stream.match(/^[()[\]{}]/)) return "bracket";
      stream.next();
      return null;
    },
    languageData: {
      commentTokens: { line: "//", block: { open: "/*", close: "*/" } },
      closeBrackets: { brackets: ["(", "[", "{", '"'] },
    },
  };

  let shared = null;

  async function take(name) {
    const versions = shared[name];
    const factory = await versions[Object.keys(versions).sort().at(-1)].get();
    return factory();
  }

  async function extension() {
    const [lab, state, language] = await Promise.all(
      ["@jupyterlab/codemirror", "@codemirror/state", "@codemirror/language"].map(take),
    );
    const { Compartment, EditorState, Prec } = state;
    const shaders = Prec.highest(language.StreamLanguage.define(tokens));
    const isShader = (text) => MAGIC.test(text.sliceString ? text.sliceString(0, 16) : text);

    function cell(options) {
      const part = new Compartment();
      const begin = isShader(options.model?.sharedModel?.getSource?.() ?? "");
      return [
        part.of(begin ? shaders : []),
        EditorState.transactionExtender.of((change) => {
          const now = part.get(change.startState) === shaders;
          const then = isShader(change.newDoc);
          return now === then ? null : { effects: part.reconfigure(then ? shaders : []) };
        }),
      ];
    }

    return {
      __esModule: true,
      default: {
        id: "kompute-py:cells",
        description: "Colours the shaders of %%glsl, %%hlsl and %%slang cells.",
        autoStart: true,
        requires: [lab.IEditorExtensionRegistry],
        activate: (_, registry) => registry.addExtension({
          name: "kompute-py:cells",
          factory: (options) => ({ instance: () => cell(options), reconfigure: () => null }),
        }),
      },
    };
  }

  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB["kompute-py"] = {
    init: (scope) => { shared = scope; },
    get: async () => {
      const made = await extension();
      return () => made;
    },
  };
})();
