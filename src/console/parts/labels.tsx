import { type ApiKey, NO_LABELS } from '../../keys/key/index.ts';
import { TextField } from './field.tsx';

/** What says what a key is for, in the documents that ask for it. */
export const LABELS = Object.keys(NO_LABELS).join(' ');

export type KeyLabels = Pick<ApiKey, keyof typeof NO_LABELS>;

export type LabelTexts = { readonly [Field in keyof KeyLabels]: string };

export function labelTexts({ description, owner, tags }: KeyLabels): LabelTexts {
  return { description: description ?? '', owner: owner ?? '', tags: tags.join(', ') };
}

/** The fields as they were filled in. */
export function labelTextsIn(form: URLSearchParams): LabelTexts {
  const text = (name: string) => form.get(name)?.trim() ?? '';
  return { description: text('description'), owner: text('owner'), tags: text('tags') };
}

/** The input of `createApiKey` and `updateApiKey` that they stand for. */
export function labelsInput({ description, owner, tags }: LabelTexts): KeyLabels {
  const each = tags.split(/[,;]/).flatMap((tag) => tag.trim() || []);
  return { description: description || null, owner: owner || null, tags: each };
}

/** Where each field of that input is in the form. */
export const LABEL_PLACES = {
  description: { id: 'description', label: 'Description' },
  owner: { id: 'owner', label: 'Owner' },
  tags: { id: 'tags', label: 'Tags' },
};

/** What to write into each field. */
const HELP: LabelTexts = {
  description: 'What it is for.',
  owner: 'Who answers for it: a person or a team.',
  tags: 'Up to 16, such as env=prod, team=payments.',
};

export function LabelFields({
  texts,
  problems,
}: {
  texts: LabelTexts;
  /** By the names of fields. */
  problems: ReadonlyMap<string, string>;
}) {
  const names = Object.keys(HELP) as (keyof LabelTexts)[];
  return (
    <>
      {names.map((name) => (
        <TextField
          name={name}
          label={LABEL_PLACES[name].label}
          help={HELP[name]}
          value={texts[name]}
          problem={problems.get(name)}
        />
      ))}
    </>
  );
}
