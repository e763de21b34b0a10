/** Properties of each field of a plugin. */
interface AnyAddedField {
  /** The name that people see, such as `Team`. */
  readonly label: string;
  /** A sentence for flags, forms and schemas. */
  readonly help: string;
  /** A value as flags and prompts show it. Default: text. */
  readonly example?: string;
  /** True if prompts for a new key ask for it. */
  readonly asked?: boolean;
  /** True if an empty value removes it. Default: a change can replace it, but not remove it. */
  readonly removable?: boolean;
  /** True if keys are selected by it. Keys that had a value before are found once they change. */
  readonly filter?: boolean;
}

/** One line of text. */
export interface LineField extends AnyAddedField {
  readonly kind: 'line';
  /** Its most characters, at most 1,000, or 500 with a filter. Default: 200. */
  readonly max?: number;
}

/** A text of several lines. */
export interface TextField extends Omit<AnyAddedField, 'filter'> {
  readonly kind: 'text';
  /** Its most characters, at most 4,000. Default: 1,000. */
  readonly max?: number;
}

/** The numbers that a field takes. */
export interface NumberRange {
  /** True for whole numbers of at most 32 bits. Default: decimal numbers as well. */
  readonly integer?: boolean;
  readonly min?: number;
  readonly max?: number;
}

/** A number. */
export interface NumberField extends AnyAddedField, NumberRange {
  readonly kind: 'number';
}

/** One of a fixed set of words. */
export interface ChoiceField extends AnyAddedField {
  readonly kind: 'choice';
  readonly values: readonly string[];
}

/** Yes or no; null without a value. */
export interface FlagField extends AnyAddedField {
  readonly kind: 'flag';
}

/** A day or a time, kept as a time in UTC. */
export interface TimeField extends Omit<AnyAddedField, 'filter'> {
  readonly kind: 'time';
}

/** A JSON object, which svc-api does not interpret. */
export interface JsonField extends Omit<AnyAddedField, 'filter'> {
  readonly kind: 'json';
  /** Its most bytes as JSON, at most 4,096. Default: 4,096. */
  readonly bytes?: number;
}

/** A list of lines, numbers or choices, each once. */
export type ListField = AnyAddedField & {
  readonly kind: 'list';
  /** The most items, at most 100. Default: 16. */
  readonly items?: number;
} & (
    | {
        /** Default: line. */
        readonly of?: 'line';
        /** The most characters of a line, at most 1,000, or 500 with a filter. Default: 200. */
        readonly max?: number;
      }
    | ({ readonly of: 'number' } & NumberRange)
    | { readonly of: 'choice'; readonly values: readonly string[] }
  );

/** A field that a plugin adds to each key. */
export type AddedField =
  | LineField
  | TextField
  | NumberField
  | ChoiceField
  | ListField
  | FlagField
  | TimeField
  | JsonField;

/** The fields that a feature adds, by their names in JSON, YAML and GraphQL: `costCentre` has the flag `--cost-centre`. */
export type AddedFields = Readonly<Record<string, AddedField>>;

/** A field as it is registered, with its id in stores. */
export type RegisteredField = AddedField & { readonly id: string };

/** An identity that a key without a secret stands for: a few texts, which a feature of svc-api sets. */
export interface Identity<Value> {
  /** Identifies the field in stores. Never change or reuse it. */
  readonly id: number;
  /** A sentence about the field. */
  readonly help: string;
  /** The name of its type in GraphQL, and a sentence about that. */
  readonly type: { readonly name: string; readonly help: string };
  /** Its texts, each with a sentence about it. */
  readonly parts: Readonly<Record<keyof Value, string>>;
  /** The parts that identify it. */
  readonly identifiedBy: readonly (keyof Value & string)[];
  /** The parts that name it, that for display first. */
  readonly names: readonly (keyof Value & string)[];
  /** A value in one line. */
  readonly textOf: (value: Value) => string;
}
