"""The parts of the report in their order. A new one: a file here, a template of the same id, and a line below."""

from longca.reporting.parts.advice import advice
from longca.reporting.parts.asked import asked
from longca.reporting.parts.figures import figures
from longca.reporting.parts.findings import findings
from longca.reporting.parts.machines import machine_facts
from longca.reporting.parts.overhead import costs
from longca.reporting.parts.part import Part
from longca.reporting.parts.provenance import provenance
from longca.reporting.parts.repeatability import repeatability
from longca.reporting.parts.scale import scale
from longca.reporting.parts.statuses import statuses
from longca.reporting.parts.tables import tables

PARTS = (
    Part("findings", "Findings", findings),
    Part("scale", "Which mechanism for which scale", scale),
    Part("advice", "What to take", advice),
    Part("figures", "Figures", figures),
    Part("tables", "Tables", tables),
    Part("asked", "What was asked", asked),
    Part("machines", "On what machine", machine_facts),
    Part("statuses", "What came of the cases", statuses),
    Part("repeatability", "Whether runs compare", repeatability),
    Part("overhead", "What measuring cost", costs),
    Part("provenance", "Provenance", provenance),
)
