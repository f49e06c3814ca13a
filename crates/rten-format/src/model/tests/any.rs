//! Anything that an attribute may be, for tests.

use proptest::{
    arbitrary::any,
    collection::vec,
    num::f32 as floats,
    option,
    strategy::{BoxedStrategy, Just, Strategy, Union},
};

use crate::{
    Attributes, AutoPad, Constant, ConstantData, ConstantDataType, CoordTransformMode, DataType,
    DepthToSpaceMode, Dim, GeluApproximation, Graph, NMSBoxOrder, NearestMode, Node, NodeKind,
    Operator, OperatorType, PadMode, RNNDirection, ResizeMode, ScatterReduction, Value,
    attributes::SoftmaxAttrs,
};

/// A type of which any value can be made.
pub(crate) trait Any: Sized {
    fn any() -> BoxedStrategy<Self>;
}

/// Sets a field of whatever a strategy makes to any value.
macro_rules! set {
    ($any:ident, $field:ident: $type:ty) => {
        ($any, <$type>::any())
            .prop_map(|(mut table, value)| {
                table.$field = value;
                table
            })
            .boxed()
    };
}
pub(crate) use set;

macro_rules! by_proptest {
    ($($type:ident)*) => {$(
        impl Any for $type {
            fn any() -> BoxedStrategy<Self> {
                any::<$type>().boxed()
            }
        }
    )*};
}

by_proptest! { bool i32 u32 String }

impl Any for f32 {
    /// No NaN, which equals nothing.
    fn any() -> BoxedStrategy<Self> {
        (floats::NORMAL | floats::SUBNORMAL | floats::ZERO | floats::INFINITE).boxed()
    }
}

macro_rules! by_code {
    ($($type:ident)*) => {$(
        impl Any for $type {
            fn any() -> BoxedStrategy<Self> {
                any::<u8>().prop_map(|code| Self::from_code(code)).boxed()
            }
        }
    )*};
}

by_code! {
    AutoPad CoordTransformMode DataType DepthToSpaceMode GeluApproximation NMSBoxOrder NearestMode
    OperatorType PadMode RNNDirection ResizeMode ScatterReduction
}

impl<T: Any + Clone + std::fmt::Debug + 'static> Any for Option<T> {
    fn any() -> BoxedStrategy<Self> {
        option::of(T::any()).boxed()
    }
}

impl<T: Any + Clone + std::fmt::Debug + 'static> Any for Vec<T> {
    fn any() -> BoxedStrategy<Self> {
        vec(T::any(), 0..4).boxed()
    }
}

impl Any for Box<Graph> {
    fn any() -> BoxedStrategy<Self> {
        let ids = || Vec::<u32>::any();
        (Vec::<Node>::any(), ids(), ids(), ids())
            .prop_map(|(nodes, inputs, outputs, captures)| {
                Self::new(Graph { nodes, inputs, outputs, captures })
            })
            .boxed()
    }
}

impl Any for Node {
    fn any() -> BoxedStrategy<Self> {
        let kind: Union<BoxedStrategy<NodeKind>> = Union::new([
            Just(NodeKind::Missing).boxed(),
            Constant::any().prop_map(NodeKind::Constant).boxed(),
            Value::any().prop_map(NodeKind::Value).boxed(),
            Operator::any().prop_map(NodeKind::Operator).boxed(),
        ]);
        (Any::any(), kind).prop_map(|(name, kind)| Self { name, kind }).boxed()
    }
}

impl Any for Constant {
    /// Of few elements, or of more dimensions than there may be; data of another length, too.
    fn any() -> BoxedStrategy<Self> {
        let shape = vec(0..3_u32, 0..3).boxed();
        let shape = Union::new_weighted(vec![(4, shape), (1, Just(vec![1; 65]).boxed())]);
        let dtypes = || any::<u16>().prop_map(|code| ConstantDataType::from_code(code % 5));
        let data = (dtypes(), 0..3_usize)
            .prop_map(|(dtype, words)| ConstantData::new(dtype, vec![0; words * 4]));
        (shape, option::of(dtypes()), data, option::of(0..64_u64))
            .prop_map(|(shape, dtype, data, data_offset)| Self { shape, dtype, data, data_offset })
            .boxed()
    }
}

impl Any for Operator {
    /// With attributes that hold no graph.
    fn any() -> BoxedStrategy<Self> {
        let attributes = i32::any().prop_map(|axis| Attributes::from(SoftmaxAttrs { axis }));
        let ids = || vec(option::of(0..1_u32 << 31), 0..4);
        (OperatorType::any(), option::of(attributes), ids(), ids())
            .prop_map(|(operator_type, attributes, inputs, outputs)| Self {
                operator_type,
                attributes,
                inputs,
                outputs,
            })
            .boxed()
    }
}

impl Any for Value {
    fn any() -> BoxedStrategy<Self> {
        (Any::any(), Any::any()).prop_map(|(shape, dtype)| Self { shape, dtype }).boxed()
    }
}

impl Any for Dim {
    fn any() -> BoxedStrategy<Self> {
        let symbol = String::any().prop_map(Self::Symbol).boxed();
        Union::new([u32::any().prop_map(Self::Fixed).boxed(), symbol]).boxed()
    }
}
