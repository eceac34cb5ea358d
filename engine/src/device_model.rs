//! The weights and the cache of a model in the memory of a device.

use std::cell::RefCell;

use crate::{
    Dtype, Error, Number, Weights,
    kv::KvPlan,
    program::{self, Vector},
    weights::{Made, Recipe, Supply},
};

/// Where a model goes: memory of a device, by what the device's kernels take it.
pub(crate) trait Room {
    /// Elements in the memory of the device.
    type Memory<T: Number>;
    /// How kernels name memory.
    type Handle: Copy;
    /// Backend, for what it lacks.
    const BACKEND: &'static str;

    /// Memory with this content.
    fn of<T: Number>(&self, content: &[T]) -> Result<Self::Memory<T>, Error>;

    /// Memory of zeros.
    fn zeroed<T: Number>(&self, count: usize) -> Result<Self::Memory<T>, Error>;

    /// The name of memory.
    fn handle<T: Number>(memory: &Self::Memory<T>) -> Self::Handle;
}

/// A matrix as it lies in main memory, row by row.
pub(crate) struct Matrix<R: Room> {
    memory: R::Memory<u8>,
    /// Rows.
    pub rows: usize,
    /// Elements of a row.
    pub width: usize,
    /// Bytes of a row.
    pub stride: usize,
}

impl<R: Room> Matrix<R> {
    pub(crate) fn handle(&self) -> R::Handle {
        R::handle(&self.memory)
    }
}

/// The weights and the cache.
pub(crate) struct Model<R: Room> {
    weights: Weights<Matrix<R>, R::Memory<f32>>,
    /// Keys and values of each layer.
    cache: Vec<[R::Memory<f32>; 2]>,
    table: R::Memory<u32>,
    /// Bytes of weights that the device made itself.
    made: usize,
}

impl<R: Room> Model<R> {
    /// Brings the weights to the device and makes an empty cache there. `make` makes a matrix of rows of so many
    /// elements where it lies, or says with `None` that it cannot; of the others one is in main memory at a time.
    ///
    /// # Errors
    /// [`Error::Unavailable`] of a model that the device has no kernels for, and those of the source and of the memory.
    pub(crate) fn load(
        room: &R,
        supply: Supply<'_>,
        plan: &KvPlan,
        mut make: impl FnMut(&[Made], Dtype, usize) -> Result<Option<R::Memory<u8>>, Error>,
    ) -> Result<Self, Error> {
        let Supply { recipes, dtype, source } = supply;
        if recipes.layers.iter().any(|layer| layer.router.is_some()) {
            return Err(Self::no_experts());
        }
        let (source, mut bytes) = (RefCell::new(source), 0);
        let matrix = |recipe: &Recipe| {
            let (rows, width) = (recipe.rows(), recipe.width());
            let stride = dtype.row_bytes(width);
            let pieces = recipe.made(&**source.borrow());
            let memory = match pieces.map_or(Ok(None), |pieces| make(&pieces, dtype, width))? {
                Some(made) => {
                    bytes += rows * stride;
                    made
                }
                None => room.of(recipe.matrix(dtype, &mut **source.borrow_mut())?.raw())?,
            };
            Ok(Matrix { memory, rows, width, stride })
        };
        let weights = recipes.map(matrix, |recipe| room.of(&recipe.vector(&mut **source.borrow_mut())?))?;
        let cache = || room.zeroed(plan.elements());
        let cache = weights.layers.iter().map(|_| Ok([cache()?, cache()?])).collect::<Result<_, Error>>()?;
        Ok(Self { weights, cache, table: room.of(plan.table())?, made: bytes })
    }

    /// Embedding table.
    pub(crate) fn embed(&self) -> &Matrix<R> {
        &self.weights.embed
    }

    /// Blocks of the cache by sequence.
    pub(crate) fn table(&self) -> R::Handle {
        R::handle(&self.table)
    }

    /// A matrix and its biases, if it has any.
    pub(crate) fn matrix(&self, matrix: program::Matrix) -> Result<(&Matrix<R>, Option<R::Handle>), Error> {
        let (matrix, bias) = self.weights.matrix(matrix)?;
        Ok((matrix, bias.map(R::handle)))
    }

    /// A vector.
    pub(crate) fn vector(&self, vector: Vector) -> Result<R::Handle, Error> {
        self.weights.vector(vector).map(R::handle)
    }

    /// Keys and values of a layer.
    pub(crate) fn cache(&self, layer: u16) -> Result<[R::Handle; 2], Error> {
        let layers = self.cache.len();
        let found = self.cache.get(usize::from(layer));
        let [keys, values] =
            found.ok_or_else(|| Error::Request(format!("the program has a layer {layer}, the model {layers}")))?;
        Ok([R::handle(keys), R::handle(values)])
    }

    /// Where its matrices come from, in words.
    pub(crate) fn came(&self) -> String {
        match self.made {
            0 => "copied from the host".to_owned(),
            bytes => format!("{bytes} bytes made on the device"),
        }
    }

    /// Why a model of experts does not run.
    pub(crate) fn no_experts() -> Error {
        let what = "it has no kernels for a mixture of experts; run --backend cpu".to_owned();
        Error::Unavailable { backend: R::BACKEND, what }
    }
}
