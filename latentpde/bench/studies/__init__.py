"""The benchmarks themselves, one file for each question. Importing this registers all of them, in this order."""

from latentpde.bench.benchmark import benchmarks
from latentpde.bench.studies.ablations import GuidanceScale, MapBudget, RefinementWeight
from latentpde.bench.studies.alarm import Alarm
from latentpde.bench.studies.batching import Batching
from latentpde.bench.studies.bounds import FamilyBounds
from latentpde.bench.studies.calibration import Calibration
from latentpde.bench.studies.cluster import Cluster
from latentpde.bench.studies.comparison import Table1, TableNoSource
from latentpde.bench.studies.core import Core
from latentpde.bench.studies.cost import Cost
from latentpde.bench.studies.coverage import Coverage
from latentpde.bench.studies.edges import Edges
from latentpde.bench.studies.ensemble_size import EnKFEnsembleSize, EnsembleSize
from latentpde.bench.studies.evidence import Evidence
from latentpde.bench.studies.fields import Gallery, PosteriorDraws, Uncertainty
from latentpde.bench.studies.fine_initial import FineInitial
from latentpde.bench.studies.fresh import Fresh
from latentpde.bench.studies.fundps import FunDPS
from latentpde.bench.studies.limit import Limit
from latentpde.bench.studies.mean_square import MeanSquare
from latentpde.bench.studies.outliers import Outliers
from latentpde.bench.studies.pareto import Pareto
from latentpde.bench.studies.peers import Peers
from latentpde.bench.studies.physics import Physics
from latentpde.bench.studies.plumes import Plumes
from latentpde.bench.studies.real import Real
from latentpde.bench.studies.rivals import Rivals
from latentpde.bench.studies.runtime import Runtime
from latentpde.bench.studies.scaling import Scaling
from latentpde.bench.studies.spectra import Spectra
from latentpde.bench.studies.speed import Speed
from latentpde.bench.studies.stages import Stages
from latentpde.bench.studies.suggest import Suggest
from latentpde.bench.studies.sweeps import Masks, Noise, Snapshots, Sparsity
from latentpde.bench.studies.unknowns import Unknowns
from latentpde.bench.studies.walls import Walls

for _benchmark in (
    *(Table1(), TableNoSource(), Pareto(), Limit(), MeanSquare(), FineInitial(), FamilyBounds(), Fresh()),
    Runtime(),
    *(Noise(), Masks(), Sparsity(), Snapshots()),
    *(Calibration(), Coverage(), Evidence(), Alarm(), Physics(), Suggest()),
    *(EnsembleSize(), EnKFEnsembleSize(), MapBudget(), GuidanceScale(), RefinementWeight(), Stages()),
    *(Gallery(), Spectra(), PosteriorDraws(), Uncertainty(), FunDPS()),
    *(Speed(), Cost(), Core(), Batching(), Scaling(), Cluster(), Peers()),
    *(Plumes(), Real(), Unknowns(), Outliers(), Edges(), Rivals(), Walls()),
):
    benchmarks.register(_benchmark.name, _benchmark)
