import { checkbox, confirm, input, search } from '@inquirer/prompts';
import type { Catalog } from '../../keys/permissions/catalog.ts';
import type { NewKey } from '../../keys/key/api-key.ts';
import { validateDescription } from '../../keys/key/description.ts';
import { NameTakenError } from '../../keys/errors.ts';
import { normalizeName, validateName } from '../../keys/key/name.ts';
import { shorten } from '../views/shorten.ts';
import { askForExpiry } from './expiry.ts';
import { listSize, ON_STDERR, ONE_BY_ONE, orCancelled, screenWidth, verdict } from './prompt.ts';

/** A new key, of which values may be missing. */
export type KeyRequest = Partial<NewKey>;

/** What is known of the names of other keys. */
export interface TakenNames {
  exists: (name: string) => Promise<boolean>;
  /** What to ask before a key gets a new name; undefined if nothing speaks against it. */
  doubt: (name: string) => Promise<string | undefined>;
  /** Whether that is answered with yes. */
  assumesYes: boolean;
}

/**
 * Asks for the missing values of a new key, and validates each answer as it is given.
 * @throws CliError CANCELLED
 */
export function askForKey(request: KeyRequest, catalog: Catalog, names: TakenNames): Promise<KeyRequest> {
  return orCancelled(async () => {
    const named = await askForName(request, names);
    const description =
      request.description ??
      (await input(
        { message: 'Description (optional)', validate: (text) => verdict(validateDescription(text)) },
        ON_STDERR,
      ));
    const grants = await askForGrants(request, catalog);
    const hasExpiry = (request.expiresIn ?? request.expiresAt) !== undefined;
    return {
      ...request,
      ...named,
      description,
      ...grants,
      ...(!hasExpiry && (await askForExpiry(named.name ?? '', catalog))),
    };
  });
}

async function askForGrants(
  { roles, permissions }: KeyRequest,
  catalog: Catalog,
): Promise<Pick<KeyRequest, 'roles' | 'permissions'>> {
  if (roles ?? permissions) return {};
  const chosen = await checkbox(
    {
      message: 'Roles (none, to choose permissions only)',
      choices: catalog.roles.map((role) => ({ value: role, name: role, description: catalog.meaningOf(role) })),
      pageSize: listSize(),
      ...ONE_BY_ONE,
    },
    ON_STDERR,
  );
  return { roles: chosen, permissions: await askForPermissions(catalog, chosen.length === 0) };
}

async function askForName(
  request: KeyRequest,
  { exists, doubt, assumesYes }: TakenNames,
): Promise<Pick<KeyRequest, 'name' | 'overwrite'>> {
  let name = request.name;
  for (;;) {
    name ??= await input({ message: 'Name', validate: (text) => verdict(validateName(text)) }, ON_STDERR);
    const isTaken = await exists(name);
    const overwrite = isTaken || (request.overwrite ?? false);
    // To destroy a key, its replacement must be asked for.
    if (isTaken && assumesYes && !request.overwrite) throw new NameTakenError(normalizeName(name), true);
    const question = isTaken
      ? `An API key named "${name.trim()}" already exists. Replace it, and delete all keys that it created?`
      : await doubt(name);
    if (question === undefined || (isTaken && request.overwrite)) return { name, overwrite };
    if (assumesYes || (await confirm({ message: question, default: false }, ON_STDERR))) return { name, overwrite };
    name = undefined;
  }
}

async function askForPermissions(catalog: Catalog, required: boolean): Promise<string[]> {
  const chosen = new Map<string, string[]>();
  for (;;) {
    const total = [...chosen.values()].flat();
    const resource = await search<string | null>(
      {
        message:
          total.length > 0
            ? `Permissions: ${shorten(total.join(', '), Math.max(20, screenWidth() - 40))}. Add another resource`
            : 'Permissions: choose a resource (type to filter)',
        source: (term = '') => [
          // While a resource is being typed, Enter must choose it, not finish.
          ...(term.trim() !== '' || (required && total.length === 0) ? [] : [{ value: null, name: 'Done' }]),
          ...catalog.resources
            .filter((name) => name.includes(term.trim().toUpperCase()))
            .map((name) => ({ value: name, name })),
        ],
        pageSize: listSize(),
      },
      ON_STDERR,
    );
    if (resource === null) return total;
    const checked = chosen.get(resource) ?? [];
    const actions = await checkbox(
      {
        message: `Actions on ${resource}`,
        choices: catalog.actions.map((action) => ({
          value: `${resource}:${action}`,
          name: action,
          checked: checked.includes(`${resource}:${action}`),
        })),
        pageSize: listSize(),
        ...ONE_BY_ONE,
      },
      ON_STDERR,
    );
    chosen.set(resource, actions);
  }
}
