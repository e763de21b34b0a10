import type { Budget } from '../../../../keys/basics/index.ts';
import type { IssuedKind, KeyChangeKind, PossibleChange } from '../../../../keys/changes/index.ts';
import {
  fixedFields,
  type identityFields,
  type KeyRestrictions,
  type KeyValues,
  namesOf,
} from '../../../../keys/key/index.ts';
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

/** A key as GraphQL returns it: see `ApiKey` of the schema. Times are RFC 3339. */
export interface ShownKey extends Omit<KeyValues, keyof typeof identityFields> {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  /** The person it stands for, if it has no secret. */
  readonly person: ShownPerson | null;
  /** Its owner, or the owner of a parent key. */
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
  /** Permissions it would lose with the suggested grants. */
  readonly excessPermissions: readonly ResourceActions[];
  readonly suggestedPermissions: readonly ResourceActions[];
  /** All its parent keys, the nearest first, with how each limits it. */
  readonly ancestors: readonly ParentKey[];
  readonly rotation: ShownRotation | null;
  /** The keys that it created, those that these created, and so on. */
  readonly branch: { readonly count: number; readonly lastUsedAt: string | null };
  /** Changes to other keys that are still in effect. */
  readonly issued: readonly IssuedChange[];
}

export interface ParentKey extends KeyRestrictions, Pick<ShownKey, 'status' | 'expiresAt' | 'permissions'> {
  readonly keyId: string;
  readonly name: string | null;
}

/** Part of a list of keys, with the total: see `ApiKeyList` of the schema. */
export interface CountedKeys<Key> {
  readonly keys: readonly Key[];
  readonly total: number;
  readonly hasMore: boolean;
}

/** A change that a key made to another: see `IssuedChange` of the schema. */
export interface IssuedChange {
  readonly name: string;
  readonly keyId: string | null;
  readonly what: IssuedKind;
  readonly at: string;
  readonly disabled: boolean;
}

/** A rotation in progress. */
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
 * Reads fields of the key that a page is about; null if it does not exist or cannot be seen. Without permission to read
 * keys, people can still read their own.
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

/** Loads the key that a page is about; null if it does not exist or cannot be seen. @throws OperationFailed */
export function findKey(visit: Visit): Promise<ShownKey | null> {
  return askOfKey(visit, FIELDS);
}

/** Everything granted to a key, including what its parent keys deny. */
export function grantedTo({ effectivePermissions, ancestors }: ShownKey): PermissionSet {
  const taken = ancestors.flatMap(({ permissions }) => permissions);
  return new PermissionSet(permissionsOf([...effectivePermissions, ...taken]) as Permission[]);
}

/** A change of a key that pages can offer. */
export type KeyAction = KeyChangeKind | 'CONTAIN';

/** The changes that a person is allowed to make to a key, by the rules that later decide. */
export class Rights {
  /** The reason each change is refused, or null. */
  readonly #reasons: ReadonlyMap<string, string | null>;
  /** It is the person's own key. */
  readonly isSelf: boolean;
  /** Disabling or deleting it signs the person out: it is their own key or a parent of that. */
  readonly endsSession: boolean;
  /** They signed in with a previous secret, which cannot change keys. */
  readonly isPrevious: boolean;

  constructor({ principal }: Visit, id: string, changes: readonly PossibleChange[]) {
    this.#reasons = new Map(changes.map(({ change, refusal }) => [change, refusal && inYourWords(refusal.reason)]));
    this.isSelf = id === principal.apiKey.id;
    this.endsSession = principal.chain.keys.some((key) => key.id === id);
    this.isPrevious = principal.secret === 'previous';
  }

  /** Checks whether a change is allowed. */
  may(change: KeyAction): boolean {
    return this.#reasons.get(change) === null;
  }

  /** The reason a change is refused, if it is. */
  whyNot(change: KeyAction): string | undefined {
    return this.#reasons.get(change) ?? undefined;
  }
}
