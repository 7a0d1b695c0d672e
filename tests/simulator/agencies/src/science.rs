//! Word lists for grants and trials. Fields of medicine and institutes are real; investigators, universities and firms are invented.

/// A field of medicine.
pub(crate) struct Subject {
    /// The institute that funds it: two letters in its project numbers, abbreviation, name.
    pub(crate) institute: (&'static str, &'static str, &'static str),
    pub(crate) conditions: &'static [&'static str],
    /// Topics of projects.
    pub(crate) themes: &'static [&'static str],
    pub(crate) terms: &'static [&'static str],
    /// Interventions: kind and name.
    pub(crate) treatments: &'static [(&'static str, &'static str)],
}

pub(crate) const SUBJECTS: &[Subject] = &[
    Subject {
        institute: ("CA", "NCI", "National Cancer Institute"),
        conditions: &[
            "Non-Small Cell Lung Cancer",
            "Metastatic Breast Cancer",
            "Multiple Myeloma",
            "Pancreatic Adenocarcinoma",
            "Melanoma",
        ],
        themes: &[
            "tumor hypoxia and immune evasion",
            "resistance to kinase inhibitors in lung cancer",
            "early detection of pancreatic cancer",
        ],
        terms: &["Oncology", "Malignant Neoplasms", "Tumor Suppressor Genes", "Metastasis", "Chemotherapy", "Mouse Model"],
        treatments: &[("DRUG", "Calderinib"), ("BIOLOGICAL", "Rowanlimab"), ("RADIATION", "Stereotactic Body Radiotherapy")],
    },
    Subject {
        institute: ("NS", "NINDS", "National Institute of Neurological Disorders and Stroke"),
        conditions: &["Parkinson Disease", "Ischemic Stroke", "Epilepsy", "Multiple Sclerosis", "Migraine"],
        themes: &[
            "dopaminergic circuits in Parkinson's disease",
            "cortical network dynamics after stroke",
            "synaptic plasticity in epilepsy",
        ],
        terms: &["Neurosciences", "Neurons", "Brain imaging", "Synapses", "Electrophysiology", "Microscopy"],
        treatments: &[("DRUG", "Larchazine"), ("DEVICE", "Adaptive Deep Brain Stimulator"), ("BIOLOGICAL", "Sablenersen")],
    },
    Subject {
        institute: ("HL", "NHLBI", "National Heart, Lung, and Blood Institute"),
        conditions: &["Heart Failure", "Atrial Fibrillation", "Hypertension", "Coronary Artery Disease"],
        themes: &["cardiac fibrosis in heart failure", "calcium handling in cardiomyocytes", "vascular stiffness and hypertension"],
        terms: &["Cardiology", "Heart failure", "Cardiac Myocytes", "Cardiovascular Diseases", "Echocardiography"],
        treatments: &[("DRUG", "Fernitrate"), ("DEVICE", "Leadless Pacing System"), ("PROCEDURE", "Catheter Ablation")],
    },
    Subject {
        institute: ("AI", "NIAID", "National Institute of Allergy and Infectious Diseases"),
        conditions: &["Systemic Lupus Erythematosus", "Rheumatoid Arthritis", "Food Allergy", "Crohn Disease"],
        themes: &["regulatory T cells in autoimmunity", "B cell tolerance in lupus", "mast cells in food allergy"],
        terms: &["Immunology", "T-Lymphocyte", "Autoimmune Diseases", "Cytokines", "Flow Cytometry"],
        treatments: &[("BIOLOGICAL", "Garnetumab"), ("DRUG", "Heathicitinib"), ("DIETARY_SUPPLEMENT", "Oral Peanut Protein")],
    },
    Subject {
        institute: ("AI", "NIAID", "National Institute of Allergy and Infectious Diseases"),
        conditions: &["HIV Infections", "Tuberculosis", "Influenza", "Malaria", "Clostridioides difficile Infection"],
        themes: &["latent reservoirs of HIV", "drug resistance in tuberculosis", "broadly neutralizing influenza antibodies"],
        terms: &["Infectious Diseases", "Antimicrobial Resistance", "Viral Load", "Vaccines", "Pathogenesis"],
        treatments: &[("BIOLOGICAL", "MRNA-7 Influenza Vaccine"), ("DRUG", "Ternavir"), ("DRUG", "Mossimycin")],
    },
    Subject {
        institute: ("DK", "NIDDK", "National Institute of Diabetes and Digestive and Kidney Diseases"),
        conditions: &["Type 2 Diabetes", "Type 1 Diabetes", "Obesity", "Non-alcoholic Steatohepatitis", "Chronic Kidney Disease"],
        themes: &["beta cell failure in type 2 diabetes", "hepatic lipid metabolism", "incretin signaling in obesity"],
        terms: &["Diabetes Mellitus", "Metabolism", "Insulin", "Obesity", "Adipose tissue"],
        treatments: &[("DRUG", "Brookglutide"), ("DEVICE", "Closed-Loop Insulin Pump"), ("BEHAVIORAL", "Intensive Lifestyle Program")],
    },
    Subject {
        institute: ("MH", "NIMH", "National Institute of Mental Health"),
        conditions: &[
            "Major Depressive Disorder",
            "Schizophrenia",
            "Post-Traumatic Stress Disorder",
            "Bipolar Disorder",
            "Anxiety Disorders",
        ],
        themes: &["reward learning in major depression", "psychosis risk in adolescents", "fear extinction in PTSD"],
        terms: &["Mental Health", "Depression", "Psychiatry", "Cognition", "Functional Magnetic Resonance Imaging"],
        treatments: &[
            ("DRUG", "Willowketamine"),
            ("BEHAVIORAL", "Cognitive Behavioral Therapy"),
            ("DEVICE", "Transcranial Magnetic Stimulator"),
        ],
    },
    Subject {
        institute: ("AR", "NIAMS", "National Institute of Arthritis and Musculoskeletal and Skin Diseases"),
        conditions: &["Duchenne Muscular Dystrophy", "Cystinosis", "Fabry Disease", "Osteogenesis Imperfecta"],
        themes: &[
            "exon skipping in Duchenne muscular dystrophy",
            "lysosomal storage in rare diseases",
            "collagen defects in brittle bone disease",
        ],
        terms: &["Rare Diseases", "Orphan Drugs", "Muscular Dystrophies", "Gene Therapy", "Natural History"],
        treatments: &[("GENETIC", "AAV9 Micro-Dystrophin"), ("DRUG", "Elmersen"), ("BIOLOGICAL", "Agalsidase Stonea")],
    },
    Subject {
        institute: ("HG", "NHGRI", "National Human Genome Research Institute"),
        conditions: &["Hereditary Cancer Syndromes", "Familial Hypercholesterolemia", "Genetic Predisposition to Disease"],
        themes: &[
            "long-read sequencing of structural variants",
            "genome-wide association across ancestries",
            "single-cell genomics of development",
        ],
        terms: &["Genomics", "Genome", "Sequencing", "Genetic Variation", "Bioinformatics"],
        treatments: &[
            ("DIAGNOSTIC_TEST", "Rapid Whole Genome Sequencing"),
            ("GENETIC", "Base Editor BE-12"),
            ("BEHAVIORAL", "Genetic Counseling"),
        ],
    },
    Subject {
        institute: ("AG", "NIA", "National Institute on Aging"),
        conditions: &["Alzheimer Disease", "Frailty", "Mild Cognitive Impairment", "Sarcopenia"],
        themes: &["tau spreading in Alzheimer's disease", "senescent cells and healthy aging", "frailty in older adults"],
        terms: &["Aging", "Alzheimer's Disease", "Elderly", "Dementia", "Cellular Senescence"],
        treatments: &[("BIOLOGICAL", "Ivorynemab"), ("BEHAVIORAL", "Supervised Resistance Training"), ("DRUG", "Senolytic MK-31")],
    },
    Subject {
        institute: ("HD", "NICHD", "Eunice Kennedy Shriver National Institute of Child Health and Human Development"),
        conditions: &["Preterm Birth", "Autism Spectrum Disorder", "Neonatal Sepsis", "Childhood Obesity"],
        themes: &["lung development in preterm infants", "language acquisition in children with autism", "pediatric critical care"],
        terms: &["Pediatrics", "Child", "Infant", "Pregnancy", "Child Development"],
        treatments: &[
            ("DRUG", "Inhaled Budesonide"),
            ("BEHAVIORAL", "Parent-Mediated Intervention"),
            ("DIETARY_SUPPLEMENT", "Docosahexaenoic Acid"),
        ],
    },
    Subject {
        institute: ("HL", "NHLBI", "National Heart, Lung, and Blood Institute"),
        conditions: &["Asthma", "Chronic Obstructive Pulmonary Disease", "Idiopathic Pulmonary Fibrosis", "Cystic Fibrosis"],
        themes: &["airway remodeling in asthma", "alveolar repair in pulmonary fibrosis", "mucus transport in cystic fibrosis"],
        terms: &["Respiratory", "Lung diseases", "Asthma", "Epithelial Cells", "Pulmonary Fibrosis"],
        treatments: &[("DRUG", "Thistlefenidone"), ("BIOLOGICAL", "Timberolizumab"), ("DEVICE", "High-Flow Nasal Oxygen")],
    },
];

/// Research locations.
pub(crate) struct Institution {
    pub(crate) name: &'static str,
    pub(crate) city: &'static str,
    /// Code letters and name.
    pub(crate) state: (&'static str, &'static str),
    pub(crate) postal_code: &'static str,
    pub(crate) uei: &'static str,
    pub(crate) kind: &'static str,
}

const MEDICINE: &str = "SCHOOLS OF MEDICINE";
const SCIENCES: &str = "SCHOOLS OF ARTS AND SCIENCES";

pub(crate) const INSTITUTIONS: &[Institution] = &[
    place("Harborview State University", "Boston", ("MA", "Massachusetts"), "02115", "HBVSUQ7K2M31", MEDICINE),
    place("Calder University", "San Francisco", ("CA", "California"), "94143", "CLDRU4N8WX52", MEDICINE),
    place("Larchmont Medical College", "New York", ("NY", "New York"), "10029", "LRMC9T6P3Z84", MEDICINE),
    place("University of the Prairie", "Minneapolis", ("MN", "Minnesota"), "55455", "UPRA2J5V8D17", MEDICINE),
    place("Granite State Institute of Technology", "Nashua", ("NH", "New Hampshire"), "03060", "GSIT7C4H9Y23", SCIENCES),
    place("Bluewater University", "Houston", ("TX", "Texas"), "77030", "BLWU3R8E6K45", MEDICINE),
    place("Otter Creek College", "Burlington", ("VT", "Vermont"), "05401", "OTCR5M2W7Q66", SCIENCES),
    place("Silverfield Children's Hospital", "Philadelphia", ("PA", "Pennsylvania"), "19104", "SFCH8L3B4T78", "INDEPENDENT HOSPITALS"),
    place("Summit Research Institute", "Seattle", ("WA", "Washington"), "98109", "SMRI6D9X2F89", "RESEARCH INSTITUTES"),
    place("Marshland University", "New Orleans", ("LA", "Louisiana"), "70112", "MRLU4G7J5N91", "SCHOOLS OF PUBLIC HEALTH"),
    place("Mesa University", "Phoenix", ("AZ", "Arizona"), "85004", "MSAU2Y6K8C12", "SCHOOLS OF PHARMACY"),
    place("Rowan Ridge University", "Durham", ("NC", "North Carolina"), "27710", "RWRU9H3V5P34", MEDICINE),
    place("Lakeside University", "Chicago", ("IL", "Illinois"), "60611", "LKSU7B4Z6W56", MEDICINE),
    place("Quarry Hill University", "Columbus", ("OH", "Ohio"), "43210", "QRHU5E8T2M77", "SCHOOLS OF NURSING"),
];

const fn place(
    name: &'static str,
    city: &'static str,
    state: (&'static str, &'static str),
    postal_code: &'static str,
    uei: &'static str,
    kind: &'static str,
) -> Institution {
    Institution { name, city, state, postal_code, uei, kind }
}

/// Research firms: name, city, state.
pub(crate) const FIRMS: &[(&str, &str, &str)] = &[
    ("Kestrel Diagnostics, Inc.", "Cambridge", "MA"),
    ("Amberline Biologics, LLC", "San Diego", "CA"),
    ("Copperfield Imaging, Inc.", "Boulder", "CO"),
    ("Fernwood Genomics, Inc.", "Madison", "WI"),
];

/// Lead sponsors: name and class.
pub(crate) const SPONSORS: &[(&str, &str)] = &[
    ("Calderbrook Therapeutics, Inc.", "INDUSTRY"),
    ("Rowanfield Pharmaceuticals", "INDUSTRY"),
    ("Ivorygate Biosciences", "INDUSTRY"),
    ("Sparrowhill Oncology, Inc.", "INDUSTRY"),
    ("Tern Medical Devices", "INDUSTRY"),
    ("Harborview State University", "OTHER"),
    ("Calder University", "OTHER"),
    ("Larchmont Medical College", "OTHER"),
    ("Silverfield Children's Hospital", "OTHER"),
    ("Lakeside University", "OTHER"),
    ("National Cancer Institute (NCI)", "NIH"),
    ("National Heart, Lung, and Blood Institute (NHLBI)", "NIH"),
    ("VA Office of Research and Development", "FED"),
    ("Ontario Harbour Health Authority", "OTHER_GOV"),
    ("Prairie Cooperative Oncology Group", "NETWORK"),
    ("Alder, Mara, M.D.", "INDIV"),
];

/// Collaborators: name and class.
pub(crate) const COLLABORATORS: &[(&str, &str)] = &[
    ("Patient-Centered Outcomes Foundation", "OTHER"),
    ("Clinique du Vieux Moulin", "UNKNOWN"),
    ("Amberline Biologics, LLC", "INDUSTRY"),
    ("National Institutes of Health (NIH)", "NIH"),
];

/// Sites abroad: facility, city, country, latitude, longitude.
pub(crate) const SITES_ABROAD: &[(&str, &str, &str, f64, f64)] = &[
    ("Clinique du Vieux Moulin", "Lyon", "France", 45.748, 4.847),
    ("Hafenklinikum", "Hamburg", "Germany", 53.551, 9.994),
    ("Ontario Harbour Hospital", "Toronto", "Canada", 43.706, -79.399),
];

pub(crate) const GIVEN_NAMES: &[&str] =
    &["Mara", "Jonas", "Priya", "Wei", "Amara", "Tomas", "Lena", "Omar", "Ines", "Kofi", "Yuki", "Dalia", "Sven", "Rosa", "Noor", "Felix"];
