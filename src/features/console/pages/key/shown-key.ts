import type { Budget } from '../../../../keys/basics/index.ts';
import type { IssuedKind, KeyChangeKind, PossibleChange } from '../../../../keys/changes/index.ts';
import { fixedFields, type KeyRestrictions, type KeyValues, namesOf } from '../../../../keys/key/index.ts';
import { type Permission, PermissionSet, type ResourceActions } from '../../../../keys/permissions/index.ts';
import { permissionsOf } from '../../parts/grants.ts';
import { inYourWords, type KeyStatus, type ShownPerson } from '../../parts/notice.tsx';
import { LABELS, RESTRICTIONS } from '../../parts/key-texts.tsx';
import type { Visit } from '../../visit.tsx';

const PERMISSIONS = '{ resource actions }';
const FIELDS = `{
    id name prefix person { issuer name }
    ${LABELS} answering roles permissions ${PERMISSIONS} unknownGrants grants ${namesOf(fixedFields).join(' ')} ${RESTRICTIONS}
    status expiresAt lastUsedAt uses budgets { limit left } createdAt createdBy disabledAt managed
    effectivePermissions ${PERMISSIONS}
    usedPermissions ${PERMISSIONS} unusedPermissions ${PERMISSIONS} suggestedPermissions ${PERMISSIONS}
    suggestedRoles excessPermissions ${PERMISSIONS}
    ancestors { keyId name status expiresAt permissions ${PERMISSIONS} ${RESTRICTIONS} }
    rotation { startedAt previousPrefix previousEndsAt previousLastUsedAt }
    branch { count lastUsedAt }
    issued { name keyId what at disabled } }`;

/** A key, as GraphQL tells of it: see `ApiKey` of the schema. Times are RFC 3339. */
export interface ShownKey extends KeyValues {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  /** Whose it is, if it is of somebody who signs in without a secret. */
  readonly person: ShownPerson | null;
  /** Who answers for it: its owner, or that of a parent key. */
  readonly answering: string | null;
  readonly roles: readonly string[];
  readonly permissions: readonly ResourceActions[];
  readonly unknownGrants: readonly string[];
  readonly grants: readonly string[];
  readonly status: KeyStatus;
  readonly expiresAt: string | null;
  readonly lastUsedAt: string | null;
  readonly uses: number;
  readonly budgets: readonly Budget[];
  readonly createdAt: string;
  readonly createdBy: string | null;
  readonly disabledAt: string | null;
  readonly managed: boolean;
  readonly effectivePermissions: readonly ResourceActions[];
  readonly usedPermissions: readonly ResourceActions[];
  readonly unusedPermissions: readonly ResourceActions[];
  readonly suggestedRoles: readonly string[];
  /** What it would lose with the suggested grants. */
  readonly excessPermissions: readonly ResourceActions[];
  readonly suggestedPermissions: readonly ResourceActions[];
  /** All its parent keys, the nearest first, with how each limits it. */
  readonly ancestors: readonly ParentKey[];
  readonly rotation: ShownRotation | null;
  /** The keys that it created, those that these created, and so on. */
  readonly branch: { readonly count: number; readonly lastUsedAt: string | null };
  /** Changes to other keys, and is in force. */
  readonly issued: readonly IssuedChange[];
}

export interface ParentKey extends KeyRestrictions, Pick<ShownKey, 'status' | 'expiresAt' | 'permissions'> {
  readonly keyId: string;
  readonly name: string | null;
}

/** Some keys, and how many there are: see `ApiKeyList` of the schema. */
export interface CountedKeys<Key> {
  readonly keys: readonly Key[];
  readonly total: number;
  readonly hasMore: boolean;
}

/** Something that a key did to another one: see `IssuedChange` of the schema. */
export interface IssuedChange {
  readonly name: string;
  readonly keyId: string | null;
  readonly what: IssuedKind;
  readonly at: string;
  readonly disabled: boolean;
}

/** A rotation under way. */
export interface ShownRotation {
  readonly startedAt: string;
  readonly previousPrefix: string;
  readonly previousEndsAt: string | null;
  readonly previousLastUsedAt: string | null;
}

/** The id of the key that a page is about: the one that its address names, or their own. */
export function idOf(visit: Visit): string {
  return visit.param('id') || visit.principal.apiKey.id;
}

/**
 * Asks for something of the key that a page is about; null if there is none that may be read. Whoever may not read keys
 * may read their own.
 * @param selection of GraphQL
 * @param declared the variables that it takes, such as `$by: UsagePeriod!`
 * @throws OperationFailed
 */
export async function askOfKey<Data>(
  visit: Visit,
  selection: string,
  declared = '',
  variables: object = {},
): Promise<Data | null> {
  const id = idOf(visit);
  const isMe = id === visit.principal.apiKey.id && !visit.may('API_KEY:READ_OWN');
  const document = isMe
    ? `query MyKey${declared && `(${declared})`} { me ${selection} }`
    : `query Key($id: ID!${declared && `, ${declared}`}) { apiKey(id: $id) ${selection} }`;
  return visit.ask(document, { ...variables, ...(!isMe && { id }) });
}

/** The key that a page is about; null if there is none that may be read. @throws OperationFailed */
export function findKey(visit: Visit): Promise<ShownKey | null> {
  return askOfKey(visit, FIELDS);
}

/** All that the grants of a key say, whatever its parent keys deny. */
export function grantedTo({ effectivePermissions, ancestors }: ShownKey): PermissionSet {
  const taken = ancestors.flatMap(({ permissions }) => permissions);
  return new PermissionSet(permissionsOf([...effectivePermissions, ...taken]) as Permission[]);
}

/** A change of a key that pages offer. */
export type KeyAction = KeyChangeKind | 'CONTAIN';

/** What somebody is permitted to do to a key, by the rules that decide when they do so. */
export class Rights {
  /** Why each change is refused; null if it is not. */
  readonly #reasons: ReadonlyMap<string, string | null>;
  /** Whether it is the key that the person has signed in with. */
  readonly isSelf: boolean;
  /** Whether that key ends with it: it is the same, or a child key of it. */
  readonly endsSession: boolean;
  /** Whether they have signed in with a previous secret, which changes no key. */
  readonly isPrevious: boolean;

  constructor({ principal }: Visit, id: string, changes: readonly PossibleChange[]) {
    this.#reasons = new Map(changes.map(({ change, refusal }) => [change, refusal && inYourWords(refusal.reason)]));
    this.isSelf = id === principal.apiKey.id;
    this.endsSession = principal.chain.keys.some((key) => key.id === id);
    this.isPrevious = principal.secret === 'previous';
  }

  /** Whether a change would be made. */
  may(change: KeyAction): boolean {
    return this.#reasons.get(change) === null;
  }

  /** Why a change would be refused; undefined if it would not. */
  whyNot(change: KeyAction): string | undefined {
    return this.#reasons.get(change) ?? undefined;
  }
}
