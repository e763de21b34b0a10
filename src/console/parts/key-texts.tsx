import {
  type Field,
  type FieldInput,
  type FieldName,
  type FieldValues,
  keyFields,
  type KeyRestrictions,
  labelFields,
  mapFields,
  namesOf,
  restrictionFields,
  type ValuesOf,
} from '../../keys/key/index.ts';
import { TextField } from './field.tsx';

/** The fields that describe a key, in documents that ask for it. */
export const LABELS = namesOf(labelFields).join(' ');
/** The fields that restrict its requests, in the same. */
export const RESTRICTIONS = namesOf(restrictionFields).join(' ');

export type KeyLabels = ValuesOf<typeof labelFields>;

/** The values of a key in fields of one line, beside its name. */
export type KeyTexts = { readonly [Name in FieldName]: string };

export function keyTexts(values: FieldValues): KeyTexts {
  return mapFields(keyFields, (_, name) => textOf(values[name]));
}

function textOf(value: FieldValues[FieldName]): string {
  return [value ?? []].flat().join(', ');
}

/** The fields as they were filled in. */
export function keyTextsIn(form: URLSearchParams): KeyTexts {
  return mapFields(keyFields, (_, name) => form.get(name)?.trim() ?? '');
}

/** The separator of items; some lists have their own. */
const SEPARATOR = /[,;]/;
const OWN_SEPARATORS: { readonly [Name in FieldName]?: RegExp } = {
  limits: /[,;]|\s+(?=\d)/,
  allowFrom: /[\s,;]+/,
};

/** The input of `createApiKey` and `updateApiKey` that they stand for. */
export function inputOfTexts(texts: KeyTexts): FieldInput {
  return mapFields(keyFields, (field, name) => inputOf(field, name, texts[name])) as FieldInput;
}

function inputOf(field: Field<unknown>, name: FieldName, text: string): unknown {
  if (field.fromText) return field.fromText(text);
  if (field.form === 'text') return text || null;
  const items = itemsIn(text, OWN_SEPARATORS[name]);
  return items.length > 0 ? items : field.none;
}

/** The items of a list that is written in one line. */
export function itemsIn(text: string, separator = SEPARATOR): string[] {
  return text.split(separator).flatMap((item) => item.trim() || []);
}

/** Where each field of that input is in the form. */
export const TEXT_PLACES = mapFields(keyFields, ({ label }, id) => ({ id, label }));

interface FieldParts {
  readonly texts: KeyTexts;
  /** By the names of fields. */
  readonly problems: ReadonlyMap<string, string>;
}

function Fields({ names, texts, problems }: FieldParts & { names: readonly FieldName[] }) {
  return (
    <>
      {names.map((name) => (
        <TextField
          name={name}
          label={TEXT_PLACES[name].label}
          help={keyFields[name].help}
          value={texts[name]}
          problem={problems.get(name)}
        />
      ))}
    </>
  );
}

export function LabelFields(parts: FieldParts) {
  return <Fields names={namesOf(labelFields)} {...parts} />;
}

export function RestrictionFields(parts: FieldParts) {
  return (
    <fieldset>
      <legend>Restrictions</legend>
      <Fields names={namesOf(restrictionFields)} {...parts} />
    </fieldset>
  );
}

export function LabelFacts({ of }: { of: KeyLabels }) {
  return (
    <>
      {namesOf(labelFields).map((name) => (
        <>
          <dt>{TEXT_PLACES[name].label}</dt>
          <dd>{textOf(of[name]) || <span class="faint">none</span>}</dd>
        </>
      ))}
    </>
  );
}

export function RestrictionFacts({ of: { limits, allowFrom } }: { of: KeyRestrictions }) {
  return (
    <>
      <dt>{TEXT_PLACES.limits.label}</dt>
      <dd>{limits.length > 0 ? limits.join(', ') : <span class="faint">those of the service</span>}</dd>
      <dt>{TEXT_PLACES.allowFrom.label}</dt>
      <dd>{allowFrom?.join(', ') ?? <span class="faint">anywhere</span>}</dd>
    </>
  );
}

/** What to think about before a key is created without them. */
export function restrictionWarnings({ allowFrom }: KeyRestrictions): string[] {
  return allowFrom === null
    ? ['It can be used from anywhere. Restrict it to networks if you know where it is used.']
    : [];
}

export function restrictionReasons({ limits, allowFrom }: KeyRestrictions): string[] {
  return [
    ...(limits.length > 0 ? [`limited to ${limits.join(', ')}, together`] : []),
    ...(allowFrom ? [`only from ${allowFrom.join(', ')}`] : []),
  ];
}
