import { type ApiKey, type KeyRestrictions, NO_LABELS, UNRESTRICTED } from '../../keys/key/index.ts';
import { TextField } from './field.tsx';

/** What says what a key is for, in the documents that ask for it. */
export const LABELS = Object.keys(NO_LABELS).join(' ');
/** What of a key restricts its requests, in the same. */
export const RESTRICTIONS = Object.keys(UNRESTRICTED).join(' ');

export type KeyLabels = Pick<ApiKey, keyof typeof NO_LABELS>;

type Written = KeyLabels & KeyRestrictions;

/** What is written of a key in fields of one line, beside its name. */
export type KeyTexts = { readonly [Field in keyof Written]: string };

export function keyTexts({ description, owner, tags, limits, allowFrom }: Written): KeyTexts {
  return {
    description: description ?? '',
    owner: owner ?? '',
    tags: tags.join(', '),
    limits: limits.join(', '),
    allowFrom: allowFrom?.join(', ') ?? '',
  };
}

/** The fields as they were filled in. */
export function keyTextsIn(form: URLSearchParams): KeyTexts {
  const text = (name: string) => form.get(name)?.trim() ?? '';
  return {
    description: text('description'),
    owner: text('owner'),
    tags: text('tags'),
    limits: text('limits'),
    allowFrom: text('allowFrom'),
  };
}

/** The input of `createApiKey` and `updateApiKey` that they stand for. */
export function inputOfTexts({ description, owner, tags, limits, allowFrom }: KeyTexts) {
  const networks = allowFrom.split(/[\s,;]+/).filter(Boolean);
  return {
    description: description || null,
    owner: owner || null,
    tags: tagsIn(tags),
    limits: limits.split(/[,;]|\s+(?=\d)/).flatMap((limit) => limit.trim() || []),
    allowFrom: networks.length > 0 ? networks : null,
  };
}

export function tagsIn(text: string): string[] {
  return text.split(/[,;]/).flatMap((tag) => tag.trim() || []);
}

/** Where each field of that input is in the form. */
export const TEXT_PLACES = {
  description: { id: 'description', label: 'Description' },
  owner: { id: 'owner', label: 'Owner' },
  tags: { id: 'tags', label: 'Tags' },
  limits: { id: 'limits', label: 'Limits' },
  allowFrom: { id: 'allowFrom', label: 'Used from' },
} as const;

/** What to write into each field. */
const HELP: KeyTexts = {
  description: 'What it is for.',
  owner: 'Who answers for it: a person or a team.',
  tags: 'Up to 16, such as env=prod, team=payments.',
  limits: 'How many requests, such as 100/m, or for good, such as 1/uses. Leave empty for the limits of the service.',
  allowFrom: 'Networks, such as 10.0.0.0/8, 2001:db8::/32. Leave empty for anywhere.',
};

interface FieldParts {
  readonly texts: KeyTexts;
  /** By the names of fields. */
  readonly problems: ReadonlyMap<string, string>;
}

function Fields({ names, texts, problems }: FieldParts & { names: readonly string[] }) {
  return (
    <>
      {(names as (keyof KeyTexts)[]).map((name) => (
        <TextField
          name={name}
          label={TEXT_PLACES[name].label}
          help={HELP[name]}
          value={texts[name]}
          problem={problems.get(name)}
        />
      ))}
    </>
  );
}

export function LabelFields(parts: FieldParts) {
  return <Fields names={Object.keys(NO_LABELS)} {...parts} />;
}

export function RestrictionFields(parts: FieldParts) {
  return (
    <fieldset>
      <legend>Restrictions</legend>
      <Fields names={Object.keys(UNRESTRICTED)} {...parts} />
    </fieldset>
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
