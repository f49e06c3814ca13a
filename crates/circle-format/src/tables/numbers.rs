//! Numbers that stand for something.

use flatbuffers::{Vector, WIPOffset};

use super::{
    encode::{Encoder, ToStored},
    scan::{FromStored, Scan},
};
use crate::{
    WriteFault,
    generated::{circle, training},
    model::{
        self, FullyConnectedOptionsWeightsFormat as WeightsFormat, Schema,
        StablehloPrecisionConfig, TensorType,
    },
};

macro_rules! numbers {
    ($( $schema:ident { $($name:ident)* } )*) => {$($(
        impl FromStored<$schema::$name> for model::$name {
            fn from_stored(stored: $schema::$name, _: &Scan<'_>) -> Self {
                Self::from_code(stored.0)
            }
        }

        impl ToStored<$schema::$name> for model::$name {
            fn to_stored(&self, _: &mut Encoder) -> Result<$schema::$name, WriteFault> {
                Ok($schema::$name(self.code()))
            }
        }
    )*)*};
}

numbers! {
    circle {
        ActivationFunctionType BuiltinOperator CombinerType CompressionType CustomOptionsFormat
        DataFormat DimensionType LSHProjectionType LSTMKernelType MirrorPadMode Padding ReduceWindowFunction RngAlgorithm RoPEMode
        StablehloComparisonDirection StablehloComparisonType StablehloPrecisionConfig
    }
    training { LossFn LossReductionType Optimizer }
}

/// Circle and TFLite have other numbers for some of them.
impl FromStored<circle::TensorType> for TensorType {
    fn from_stored(stored: circle::TensorType, scan: &Scan<'_>) -> Self {
        Self::from_code(stored.0, scan.schema())
    }
}

impl ToStored<circle::TensorType> for TensorType {
    fn to_stored(&self, encoder: &mut Encoder) -> Result<circle::TensorType, WriteFault> {
        let code = self.code(encoder.schema()).map(circle::TensorType);
        code.ok_or_else(|| encoder.missing(format!("the element type {self}")))
    }
}

impl FromStored<circle::FullyConnectedOptionsWeightsFormat> for WeightsFormat {
    fn from_stored(stored: circle::FullyConnectedOptionsWeightsFormat, _: &Scan<'_>) -> Self {
        Self::from_code(stored.0)
    }
}

impl ToStored<circle::FullyConnectedOptionsWeightsFormat> for WeightsFormat {
    fn to_stored(
        &self,
        encoder: &mut Encoder,
    ) -> Result<circle::FullyConnectedOptionsWeightsFormat, WriteFault> {
        if encoder.schema() == Schema::Tflite && *self == Self::SHUFFLED16x1FLOAT32 {
            return Err(encoder.missing(format!("the weights format {self}")));
        }
        Ok(circle::FullyConnectedOptionsWeightsFormat(self.code()))
    }
}

type Stored<'a> = Vector<'a, circle::StablehloPrecisionConfig>;

impl<'a> FromStored<Option<Stored<'a>>> for Vec<StablehloPrecisionConfig> {
    fn from_stored(stored: Option<Stored<'a>>, scan: &Scan<'_>) -> Self {
        let Some(stored) = stored else { return Self::new() };
        scan.note(stored.bytes());
        stored.iter().map(|number| scan.read(number)).collect()
    }
}

impl ToStored<Option<WIPOffset<Stored<'static>>>> for Vec<StablehloPrecisionConfig> {
    fn to_stored(
        &self,
        encoder: &mut Encoder,
    ) -> Result<Option<WIPOffset<Stored<'static>>>, WriteFault> {
        let numbers = self.iter().map(|number| encoder.write(number));
        let numbers: Vec<circle::StablehloPrecisionConfig> = numbers.collect::<Result<_, _>>()?;
        encoder.vector(&numbers)
    }
}
