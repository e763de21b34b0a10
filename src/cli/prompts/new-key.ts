import { type Option, type Prompts, screenWidth, verdict } from './prompt.ts';
import { withPrompts } from './with-prompts.ts';
import { formatCount } from '../output.ts';
import { violationsOfEnd } from '../../keys/authorization/index.ts';
import { formatDuration, NameTakenError } from '../../keys/basics/index.ts';
import {
  expiryIn,
  expiryOf,
  type ExpiryRequest,
  fieldsOf,
  type NewKey,
  normalizeName,
  validateExpiry,
  validateName,
  valueOfText,
} from '../../keys/key/index.ts';
import { ALL_ACCESS, type Catalog } from '../../keys/permissions/index.ts';

/** Null for a custom time. */
type Choice = Option<ExpiryRequest | null>;

const CHOICES: readonly Choice[] = [
  { name: 'in 30 days', value: { expiresIn: '30d' } },
  { name: 'in 90 days', value: { expiresIn: '90d' } },
  { name: 'in 1 year', value: { expiresIn: '365d' } },
  { name: 'never', value: {} },
  { name: 'at another time', value: null },
];

/**
 * Asks when a key expires, within the policy. A custom time is checked as it is entered.
 * @param name the key's
 */
async function askForExpiry(prompts: Prompts, name: string, catalog: Catalog): Promise<ExpiryRequest> {
  const forbidden = (request: ExpiryRequest) => {
    const now = Date.now();
    return violationsOfEnd({ name, expiresAt: expiryOf(request, now) ?? null }, catalog, now)[0];
  };
  const choices = choicesFor(catalog).filter(({ value }) => value === null || forbidden(value) === undefined);
  const chosen = await prompts.select({ message: 'Expires', choices });
  if (chosen) return chosen;
  const text = await prompts.input({
    message: 'Expires in (90m, 12h, 30d) or at (2030-12-31T23:59:59Z)',
    validate: (answer) => {
      const request = expiryIn(answer);
      const [issue] = validateExpiry(request, Date.now());
      return issue ? verdict(issue) : (forbidden(request) ?? true);
    },
  });
  return expiryIn(text);
}

/** Includes the longest time that the policy allows, if it is not among the choices. */
function choicesFor({ policy: { maxLifetime } }: Catalog): readonly Choice[] {
  const longest = maxLifetime === null ? undefined : formatDuration(maxLifetime);
  if (longest === undefined || CHOICES.some(({ value }) => value?.expiresIn === longest)) return CHOICES;
  return [...CHOICES.slice(0, -2), { name: `in ${longest}`, value: { expiresIn: longest } }, ...CHOICES.slice(-2)];
}

/** A new key, possibly with missing values. */
export type KeyRequest = Partial<NewKey>;

interface TakenNames {
  exists: (name: string) => Promise<boolean>;
  /** A confirmation to ask for this name, if any. */
  doubt: (name: string) => Promise<string | undefined>;
  assumesYes: boolean;
}

/**
 * Asks for the missing values of a new key, and validates each answer as it is entered.
 * @throws CliError CANCELLED
 */
export function askForKey(request: KeyRequest, catalog: Catalog, names: TakenNames): Promise<KeyRequest> {
  return withPrompts(async (prompts) => {
    const named = await askForName(prompts, request, names);
    const described = await askForFields(prompts, request);
    const grants = await askForGrants(prompts, request, catalog);
    const hasExpiry = (request.expiresIn ?? request.expiresAt) !== undefined;
    return {
      ...request,
      ...named,
      ...described,
      ...grants,
      ...(!hasExpiry && (await askForExpiry(prompts, named.name ?? '', catalog))),
    };
  });
}

/** Asks for those fields that prompts ask for and that are missing. */
async function askForFields(prompts: Prompts, request: KeyRequest): Promise<KeyRequest> {
  const answers: Record<string, unknown> = {};
  for (const [name, field] of fieldsOf()) {
    if (!field.isAsked || request[name] !== undefined) continue;
    const example = field.example === undefined ? '' : ` <${field.example}${field.form === 'list' ? ',…' : ''}>`;
    const text = await prompts.input({
      message: `${field.label}${example} (optional)`,
      validate: (answer) => verdict(field.validate(valueOfText(field, answer))[0]),
    });
    answers[name] = valueOfText(field, text);
  }
  return answers;
}

async function askForGrants(
  prompts: Prompts,
  { roles, permissions }: KeyRequest,
  catalog: Catalog,
): Promise<Pick<KeyRequest, 'roles' | 'permissions'>> {
  if (roles ?? permissions) return {};
  const chosen = await prompts.checkbox({
    message: 'Roles (none, to choose permissions only)',
    // The role that allows everything comes last, so that it is not chosen by habit.
    choices: catalog.roles
      .toSorted((a, b) => Number(a === ALL_ACCESS) - Number(b === ALL_ACCESS))
      .map((role) => ({ value: role, name: role, description: catalog.meaningOf(role) })),
  });
  return { roles: chosen, permissions: await askForPermissions(prompts, catalog, chosen.length === 0) };
}

async function askForName(
  prompts: Prompts,
  request: KeyRequest,
  { exists, doubt, assumesYes }: TakenNames,
): Promise<Pick<KeyRequest, 'name' | 'overwrite'>> {
  let name = request.name;
  for (;;) {
    name ??= await prompts.input({ message: 'Name', validate: (text) => verdict(validateName(text)) });
    const isTaken = await exists(name);
    const overwrite = isTaken || (request.overwrite ?? false);
    // Replacing destroys a key, so it must be requested explicitly.
    if (isTaken && assumesYes && !request.overwrite) throw new NameTakenError(normalizeName(name), true);
    const question = isTaken
      ? `An API key named "${name.trim()}" already exists. Replace it, and delete all keys that it created?`
      : await doubt(name);
    if (question === undefined || (isTaken && request.overwrite)) return { name, overwrite };
    if (assumesYes || (await prompts.confirm(question))) return { name, overwrite };
    name = undefined;
  }
}

async function askForPermissions(prompts: Prompts, catalog: Catalog, required: boolean): Promise<string[]> {
  const chosen = new Map<string, string[]>();
  for (;;) {
    const total = [...chosen.values()].flat();
    const resource = await prompts.search<string | null>({
      message:
        total.length > 0
          ? `Permissions: ${namesOrCount(total)}. Add another resource`
          : 'Permissions: choose a resource (type to filter)',
      source: (term = '') => [
        // While a resource is being typed, Enter must choose it, not finish.
        ...(term.trim() !== '' || (required && total.length === 0) ? [] : [{ value: null, name: 'Done' }]),
        ...catalog.offered
          .filter((name) => name.includes(term.trim().toUpperCase()))
          .map((name) => ({ value: name, name })),
      ],
    });
    if (resource === null) return total;
    const checked = chosen.get(resource) ?? [];
    const actions = await prompts.checkbox({
      message: `Actions on ${resource}`,
      choices: catalog.actions.map((action) => ({
        value: `${resource}:${action}`,
        name: action,
        checked: checked.includes(`${resource}:${action}`),
      })),
    });
    chosen.set(resource, actions);
  }
}

/** Permissions, if they fit beside the question, or their number: a prompt of many lines could not be redrawn. */
function namesOrCount(permissions: readonly string[]): string {
  const names = permissions.join(', ');
  return names.length <= Math.max(20, screenWidth() - 40)
    ? names
    : formatCount(permissions.length, 'permission', 'permissions');
}
