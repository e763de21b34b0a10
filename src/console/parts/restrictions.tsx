import { type KeyRestrictions, UNRESTRICTED } from '../../keys/key/index.ts';
import { TextField } from './field.tsx';

/** What of a key restricts its requests, in the documents that ask for it. */
export const RESTRICTIONS = Object.keys(UNRESTRICTED).join(' ');

export type RestrictionTexts = { readonly [Field in keyof KeyRestrictions]: string };

export function restrictionTexts({ limits, allowFrom }: KeyRestrictions): RestrictionTexts {
  return { limits: limits.join(', '), allowFrom: allowFrom?.join(', ') ?? '' };
}

/** The fields as they were filled in. */
export function restrictionTextsIn(form: URLSearchParams): RestrictionTexts {
  return { limits: form.get('limits')?.trim() ?? '', allowFrom: form.get('allowFrom')?.trim() ?? '' };
}

/** The input of `createApiKey` and `updateApiKey` that they stand for. */
export function restrictionsInput({ limits, allowFrom }: RestrictionTexts) {
  const networks = allowFrom.split(/[\s,;]+/).filter(Boolean);
  return {
    limits: limits.split(/[,;]|\s+(?=\d)/).flatMap((limit) => limit.trim() || []),
    allowFrom: networks.length > 0 ? networks : null,
  };
}

/** Where each field of that input is in the form. */
export const RESTRICTION_PLACES = {
  limits: { id: 'limits', label: 'Limits' },
  allowFrom: { id: 'allowFrom', label: 'Used from' },
};

export function RestrictionFields({
  texts: { limits, allowFrom },
  problems,
}: {
  texts: RestrictionTexts;
  /** By the names of fields. */
  problems: ReadonlyMap<string, string>;
}) {
  return (
    <fieldset>
      <legend>Restrictions</legend>
      <TextField
        name="limits"
        label={RESTRICTION_PLACES.limits.label}
        help="How many requests, such as 100/m, or for good, such as 1/uses. Leave empty for the limits of the service."
        value={limits}
        problem={problems.get('limits')}
      />
      <TextField
        name="allowFrom"
        label={RESTRICTION_PLACES.allowFrom.label}
        help="Networks, such as 10.0.0.0/8, 2001:db8::/32. Leave empty for anywhere."
        value={allowFrom}
        problem={problems.get('allowFrom')}
      />
    </fieldset>
  );
}

export function RestrictionFacts({ of: { limits, allowFrom } }: { of: KeyRestrictions }) {
  return (
    <>
      <dt>{RESTRICTION_PLACES.limits.label}</dt>
      <dd>{limits.length > 0 ? limits.join(', ') : <span class="faint">those of the service</span>}</dd>
      <dt>{RESTRICTION_PLACES.allowFrom.label}</dt>
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
