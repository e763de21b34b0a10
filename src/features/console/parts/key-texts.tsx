import {
  type FieldInput,
  type FieldName,
  fieldsOf,
  isNone,
  type FieldTable,
  type FieldValues,
  keyFields,
  labelFields,
  mapFields,
  namesOf,
  restrictionFields,
  textOf,
  valueOfText,
} from '../../../keys/key/index.ts';
import { TextField } from './field.tsx';
import { Fact } from './notice.tsx';

/** GraphQL fields that describe a key. */
export const LABELS = namesOf(labelFields).join(' ');
/** GraphQL fields that restrict a key. */
export const RESTRICTIONS = namesOf(restrictionFields).join(' ');

/** The values of a key as texts for one-line fields, except for its name. */
export type KeyTexts = { readonly [Name in FieldName]: string };

export function keyTexts(values: FieldValues): KeyTexts {
  return mapFields(keyFields, (_, name) => textOf(values[name]));
}

/** The fields as they were filled in. */
export function keyTextsIn(form: URLSearchParams): KeyTexts {
  return mapFields(keyFields, (_, name) => form.get(name)?.replaceAll('\r\n', '\n').trim() ?? '');
}

/** Separators of lists that do not use the usual one. */
const SEPARATORS: { readonly [Name in FieldName]?: RegExp } = {
  limits: /[,;]|\s+(?=\d)/,
  allowFrom: /[\s,;]+/,
};

/** The texts as input of `createApiKey` and `updateApiKey`. */
export function inputOfTexts(texts: KeyTexts): FieldInput {
  return mapFields(keyFields, (field, name) => valueOfText(field, texts[name], SEPARATORS[name])) as FieldInput;
}

/** Problems of values that are not texts, by field. Sent as JSON, NaN would become null and remove the value. */
export function valueProblems(texts: KeyTexts): Map<string, string> {
  const problems = fieldsOf().flatMap(([name, field]) => {
    const isText = (field.fromText ?? field.fromTexts) === undefined;
    const issues = isText ? [] : field.validate(valueOfText(field, texts[name]));
    return issues.map(({ message }) => [name, message] as const);
  });
  return new Map(problems);
}

/** The place of each field in the form. */
export const TEXT_PLACES = mapFields(keyFields, ({ label }, id) => ({ id, label }));

interface FieldParts {
  readonly texts: KeyTexts;
  /** By the names of fields. */
  readonly problems: ReadonlyMap<string, string>;
}

/** The words of a field that is one of them, each as it is sent and as it is shown. */
function choicesOf(field: FieldTable[string]): (readonly [value: string, text: string])[] | undefined {
  if (field.form === 'list') return undefined;
  return field.words?.map((word) => [textOf(valueOfText(field, word)), word]);
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
          hasLines={keyFields[name].hasLines}
          choices={choicesOf(keyFields[name])}
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

/** The values of a key in the fields of a table. @param onlyGiven leaves out fields that it does not have */
export function FieldFacts({
  table,
  of,
  onlyGiven = false,
}: {
  table: FieldTable;
  of: Partial<FieldValues>;
  onlyGiven?: boolean;
}) {
  const shown = fieldsOf(table).filter(([name]) => !onlyGiven || !isNone(of[name]));
  return (
    <>
      {shown.map(([name, { label, hasLines, noneText = 'none' }]) => {
        const text = textOf(of[name]) || <span class="faint">{noneText}</span>;
        return <Fact name={label}>{hasLines ? <span class="lines">{text}</span> : text}</Fact>;
      })}
    </>
  );
}
