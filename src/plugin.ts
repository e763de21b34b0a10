import type { BooleanFlag, Config, Hook, Hooks, OptionFlag } from '@oclif/core/interfaces';
import { addFields, chooseFeatures as choose } from './keys/added/index.ts';
import type { Feature } from './feature.ts';
import type { OperationsClient } from './keys/operations/index.ts';
import { ownFeatures, takenNames } from './cli/plugins/taken-names.ts';

// The members of `Feature` that features declare.
// oxlint-disable-next-line unicorn/require-module-specifiers
export type {} from './features/index.ts';
export type {
  Background,
  BackgroundContext,
  CheckAnswer,
  CheckContext,
  DoctorCheck,
  Feature,
  FeatureContext,
} from './feature.ts';
export type { HttpApp } from './http/index.ts';
export type { Actor } from './keys/authorization/index.ts';
export type { Transaction, WrittenKey } from './keys/changes/index.ts';
export type { KeysService } from './keys/service/index.ts';
export type { OperationsClient, Server } from './keys/operations/index.ts';
export type { AddedSection, StandardIssue, StandardResult, StandardSchema } from './config/added-section.ts';
export type {
  AddedField,
  AddedFields,
  ChoiceField,
  FlagField,
  JsonField,
  LineField,
  ListField,
  NumberField,
  NumberRange,
  TextField,
  TimeField,
} from './keys/added/index.ts';
export type { StoreOfFeature } from './store/index.ts';
export type { Port } from './keys/basics/index.ts';
export type { AddedMetric, MeasuredValue } from './keys/added/index.ts';

/**
 * The oclif hook `svc-api:feature`.
 * @example
 * const hook: FeatureHook = async () => ({ name: 'svc-api-team', fields: { team: { kind: 'line', label: 'Team', help: 'Team of the key.' } } });
 * export default hook;
 */
export type FeatureHook = Hook<
  'svc-api:feature',
  Hooks & { 'svc-api:feature': { options: Record<string, unknown>; return: Feature | undefined } }
>;

/**
 * Adds features in a program that is not an oclif CLI. Call it in a module that is imported before `svc-api`.
 * @throws KeysError FEATURE_INVALID, also once svc-api is loaded
 */
export function addFeatures(...features: readonly Feature[]): void {
  addFields(features, takenNames());
}

/**
 * Chooses features of svc-api, and those that they need. The others have no endpoints, fields of the schema or sections
 * of the configuration. Call it like `addFeatures`. Without a call, all are chosen; without a name, none.
 * @example
 * chooseFeatures('consent', 'notices');
 * @throws KeysError FEATURE_INVALID for an unknown name, and once svc-api is loaded
 */
export function chooseFeatures(...names: readonly string[]): void {
  choose(names, ownFeatures(), 'The program');
}

type Texts = Readonly<Record<'database' | 'config' | 'server', OptionFlag<string | undefined>>>;

/** A flag like one of oclif's `Flags.string`, which programs without commands do not load. */
function option(description: string, helpValue: string): OptionFlag<string | undefined> {
  const flag = { type: 'option', multiple: false, input: [], parse: async (input: string) => input };
  return { ...flag, helpGroup: 'GLOBAL', description, helpValue } as unknown as OptionFlag<string | undefined>;
}

/** The flags of a command that works on a key store or on a server, for its `flags`. */
export const clientFlags: Texts & { readonly insecure: BooleanFlag<boolean> } = {
  database: option('Path or postgres:// URL of the key store.', '<path>'),
  config: option('Path of the configuration.', '<path>'),
  server: option('Address of a running server, in place of a key store, with the key in SVC_API_KEY.', '<url>'),
  insecure: {
    type: 'boolean',
    allowNo: false,
    parse: async (input: boolean) => input,
    helpGroup: 'GLOBAL',
    description: 'Send the key also to a server elsewhere that speaks plain HTTP.',
  } as unknown as BooleanFlag<boolean>,
};

/**
 * Performs operations of a feature in a command of a plugin: on a key store as its operator, or on a running server
 * with the key in SVC_API_KEY.
 * @param flags values of `clientFlags`
 * @throws KeysError FEATURE_INVALID, USAGE, UNAUTHENTICATED, SERVER_…, STORE_…; errors of `work`
 * @example
 * await withClient(this.config, flags, (client) => client.of(feature).approveDeploy({ id: '7' }));
 */
export async function withClient<Result>(
  config: Config,
  flags: { readonly [Name in keyof Texts]?: string | undefined } & { readonly insecure?: boolean | undefined },
  work: (client: OperationsClient) => Promise<Result>,
): Promise<Result> {
  const { withPluginClient } = await import('./cli/plugin-client.ts');
  return withPluginClient(config, flags, work);
}
