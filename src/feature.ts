import type { Config } from './config/config.ts';
import type { FeatureSchema } from './graphql/index.ts';
import type { AddedSection } from './config/added-section.ts';
import type { FeatureConfig } from './config/section.ts';
import type { HttpApp, NamedCommands, RequestCheck, RequestWatcher, RouteContext } from './http/index.ts';
import type { AddedMetric, FeatureOfFields } from './keys/added/index.ts';
import type { AddedError, ErrorTable } from './keys/basics/index.ts';
import type { KeyListener, OwnKeyListener } from './keys/changes/index.ts';
import type { ApiKey } from './keys/key/index.ts';
import type { Client, Operations, RemoteOperations } from './keys/operations/index.ts';
import type { CatalogAdditions, Vocabulary } from './keys/permissions/index.ts';
import type { KeyRepository } from './keys/repository/index.ts';
import type { CredentialPlace } from './keys/secret/index.ts';
import type { KeysService } from './keys/service/index.ts';
import type { Limited } from './limits/index.ts';
import type { Log } from './log.ts';
import type { FeatureInStore, StoreOfFeature, StoreTimer } from './store/index.ts';

/** A part of svc-api or of a plugin. It declares everything it adds. */
export interface Feature extends FeatureOfFields {
  /** Its error codes, such as `TEAM_MISSING`. No other feature can have the same code. */
  readonly errors?: Readonly<Record<string, AddedError>>;
  /** Its sections of `svc-api.yaml`, by their names. Import them here: commands that read no file do not load them. */
  readonly config?: { readonly sections: Readonly<Record<string, () => Promise<AddedSection>>> };
  /** Loads its tables, migrations and ports in a store. Commands without a store do not load it. */
  readonly store?: () => Promise<StoreOfFeature>;
  /** Its steps when keys change, in the transaction of the change. */
  readonly onKeys?: KeyListener;
  /** Its operations, by the names of their root fields in its schema. */
  readonly operations?: Operations;
  /** Loads functions that ask a server for its operations, by their names. Without it, commands need a store. */
  readonly remote?: () => Promise<RemoteOperations>;
  /** Loads its part of the GraphQL schema. Only servers load it. */
  readonly schema?: () => Promise<FeatureSchema<Config | undefined>>;
  /** Adds its endpoints to an app. Import what they need here, so that commands do not load it. */
  readonly routes?: (app: HttpApp, context: FeatureContext) => Promise<void>;
  /**
   * Starts work in the background, in each process of a server that has the store. Import what it needs here.
   * @throws an error that stops the server from starting
   */
  readonly background?: (context: BackgroundContext) => Promise<Background>;
  /** Its checks for `svc-api doctor`. */
  readonly checks?: readonly DoctorCheck[];
}

/** A check of `svc-api doctor`. */
export interface DoctorCheck {
  /** Its name in findings. That of a plugin begins with the name of its package in this form: `SVC_API_TEAM`. */
  readonly name: string;
  /** Looks at what it checks, and changes nothing. Import what it needs here. */
  readonly run: (context: CheckContext) => Promise<readonly CheckAnswer[]>;
}

/** A thing that a check has looked at, such as a server: as a line of text, and as JSON. */
export interface CheckedItem {
  readonly text: string;
  readonly json: object;
}

/** One of the answers of a check, in words for users. A warning or a failure says what to do. */
export type CheckAnswer = { readonly items?: readonly CheckedItem[] } & (
  | { readonly status: 'ok'; readonly message: string }
  | { readonly status: 'warning' | 'failure'; readonly message: string; readonly remedy: string }
);

/** Parts of an installation for checks. */
export interface CheckContext {
  /** The configuration; undefined if it has errors. */
  readonly config: Config | undefined;
  /** The store; undefined if it cannot be read. */
  readonly store: CheckedStore | undefined;
  /** The variables of the environment. */
  readonly env: NodeJS.ProcessEnv;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  /** All available features. */
  readonly features: readonly OwnFeature[];
  /** Aborts once the check takes too long. */
  readonly signal: AbortSignal;
}

/** A store, to read. */
export interface CheckedStore {
  /** Keys, their audit log, and what features keep beside them. */
  readonly repository: Omit<KeyRepository, 'write' | 'follow' | 'watchHearing'>;
}

/** A feature of svc-api itself, with members that plugins cannot have. Its fields of keys are in `keys/key/fields.ts`. */
export interface OwnFeature extends Omit<Feature, 'config' | 'fields' | 'onKeys'> {
  /** Its steps when keys change, or were used. */
  readonly onKeys?: OwnKeyListener;
  /** Its error codes, in the form of the core's. */
  readonly errors?: ErrorTable;
  /** Its sections of `svc-api.yaml`, and its part of the configuration without them. */
  readonly config?: FeatureConfig;
  /** Its flags and forms of other commands, by the ids of the commands, such as `apikey:list`. */
  readonly commands?: Readonly<Record<string, CommandAddition>>;
  /** Parts that other features use if they are there, by name. */
  readonly provides?: Readonly<Record<string, () => Promise<unknown>>>;
  /** Serves the worker processes of `serve`, in their primary process. */
  readonly inPrimary?: () => Promise<void>;
}

/** A feature's part of another command. */
export interface CommandAddition {
  /** Its flags, by their names without dashes. */
  readonly flags: Readonly<Record<string, AddedFlag>>;
  /** Arguments for which it runs, of a command that has several forms. */
  readonly form?: CommandForm;
  /**
   * Runs instead of the command if one of its flags, or arguments of its form, are given. Returns the result as JSON.
   * Import what it needs here. Without it, its flags are settings that the command reads.
   */
  readonly run?: (command: RunningCommand) => Promise<object>;
}

/** One of the forms of a command, which its arguments decide. */
export interface CommandForm {
  /** The arguments in the usage, such as `METHOD URL`. */
  readonly syntax: string;
  /** The arguments in the list of them, such as `URL of the request`. */
  readonly args: readonly string[];
  /** Sentences about the form. */
  readonly description: string;
  readonly examples: readonly (readonly [description: string, line: string])[];
  /** True for arguments of this form, and of no other. */
  readonly takes: (args: readonly string[]) => boolean;
}

/** A flag of a feature, as data: programs without commands load it as well. */
export interface AddedFlag {
  readonly description: string;
  /** Its value in the help, such as `<text>`. A flag without one is on or off. */
  readonly value?: string;
  /** True for several values, separated by commas. */
  readonly isList?: boolean;
  /** Its heading in the help. */
  readonly group?: string;
  /** True if the help does not list it. */
  readonly isHidden?: boolean;
}

/** A command that was typed with a flag of a feature, or in a form of it. */
export interface RunningCommand {
  readonly args: readonly string[];
  /** The values of its flags, without those of all commands. */
  readonly flags: Readonly<Record<string, unknown>>;
  readonly isJson: boolean;
  readonly terminal: { readonly isTerminal: boolean; readonly columns: number; note(text: string): Promise<void> };
  /**
   * Reads the configuration.
   * @param onUnmet called with failed expectations, which are then no error
   * @throws KeysError CONFIG_…, SCHEMA_INVALID
   */
  loadConfig(onUnmet?: (text: string) => void): Promise<CommandConfig>;
  /** Opens the key store or server of the command. @throws KeysError STORE_… */
  withKeys<Result>(work: (keys: Client) => Promise<Result>): Promise<Result>;
  /**
   * Opens the key store and finds a key there.
   * @param additions to the built-in catalog
   * @throws KeysError STORE_…, NOT_FOUND
   */
  withStored<Result>(
    name: string,
    additions: CatalogAdditions,
    work: (keys: KeysService, key: ApiKey) => Promise<Result>,
  ): Promise<Result>;
  /** Writes to stdout. */
  write(text: string): Promise<void>;
  /** Writes the object with `--json`, otherwise the text. @returns the object */
  print<Json extends object>(json: Json, text: string | undefined): Promise<Json>;
  /** Like `print`, for sentences. */
  printLines<Json extends object>(json: Json, text: string): Promise<Json>;
}

/** The configuration as a command reads it. */
export interface CommandConfig {
  readonly config: Config;
  /** The resources and actions of the host, which are not those of the configuration. */
  readonly ofHost: Vocabulary;
}

/** Parts of a service for the endpoints of features. Each app has one, which all features share. */
export interface FeatureContext extends RouteContext {
  readonly config: Config | undefined;
  /** The options of `createApp`. */
  readonly options: object;
  /** True if a console was requested. */
  readonly console: boolean;
  /** Places of keys in requests. */
  readonly credentials: readonly CredentialPlace[];
  /** Networks of the proxies whose headers are trusted. */
  readonly trust: readonly string[];
  /** The address of the service; undefined if none is configured. */
  readonly publicUrl: string | undefined;
  /** The commands that pages mention. */
  readonly commands: NamedCommands;
  /** All available features. */
  readonly features: readonly OwnFeature[];
  /** True in each of several worker processes of `serve`. */
  readonly isWorker: boolean;
  /** The app that this one replaces after a change of the configuration. */
  readonly replaces: object | undefined;
}

/** A server, for work in the background. */
export interface BackgroundContext {
  /** The keys under the configuration that the server starts with. */
  readonly keys: KeysService & Limited & { readonly check: RequestCheck };
  readonly config: Config;
  /** All available features. */
  readonly features: readonly OwnFeature[];
  /** True for `serve`, false for a guard. */
  readonly hasGraphQL: boolean;
  /** Resolves once this process takes over the work that only one of several processes does. */
  readonly turn: Promise<void>;
  readonly log: Log;
  /** Exports metrics from now on, if the server has any. */
  readonly measure: (metrics: readonly AddedMetric[]) => void;
}

/** Logs, metrics and traces for `serve`, which a feature provides as `telemetry`. */
export interface TelemetryRoom {
  /** @throws KeysError LISTEN_FAILED if the address for metrics is not available */
  start(options: TelemetryOptions): Promise<Telemetry>;
  /**
   * Serves the metrics of all workers, from the first process.
   * @throws KeysError LISTEN_FAILED if the address is not available
   */
  serveWorkers(place: { host: string; port: number }, log: Log): Promise<{ stop(): Promise<void> }>;
}

/** Options for logs, metrics and traces of a process. */
export interface TelemetryOptions {
  requestLog: boolean;
  /** Address of metrics; `primary` if the first of several processes serves them and collects from this one. */
  metrics: { host: string; port: number } | 'primary' | undefined;
  /** OpenTelemetry's variables enable traces. */
  traces: boolean;
  log: Log;
  /** Features with metrics of their own. */
  features: readonly OwnFeature[];
}

/** Logs, metrics and traces of a serving process. */
export interface Telemetry {
  readonly watchers: readonly RequestWatcher[];
  readonly metrics: TelemetryMetrics | undefined;
  /** Details to log beside the address. */
  readonly details: object;
  /** Sends pending data. */
  stop(): Promise<void>;
}

/** Metrics of a serving process. */
export interface TelemetryMetrics {
  readonly storeTimer: StoreTimer;
  measure(keys: KeysService & Limited): void;
  /**
   * Exports metrics of a feature.
   * @throws KeysError FEATURE_INVALID if one has the name of another
   */
  add(feature: string, metrics: readonly OwnMetric[]): void;
}

/** Makes metrics about the keys that a process serves. A feature provides it as `metrics`. */
export type MetricsOfKeys = (inUse: () => Pick<KeysService, 'feature'> | undefined) => readonly OwnMetric[];

/** A metric of a feature of svc-api. */
export interface OwnMetric extends AddedMetric {
  /** How the values of several processes are combined. Default: their sum. */
  readonly aggregator?: 'max';
}

/** Work in the background, while it runs. */
export interface Background {
  /**
   * Prepares for another configuration. The function it returns switches to that, and cannot fail.
   * @throws an error that rejects the configuration
   */
  prepare?(changed: Pick<BackgroundContext, 'keys' | 'config'>): Promise<() => void | Promise<void>>;
  /** Resolves once all work has ended. */
  stop(): Promise<void>;
}

/** Loads the tables, migrations and ports of features, before a store is opened. */
export async function storesOf(features: readonly OwnFeature[]): Promise<FeatureInStore[]> {
  const kept = features.flatMap(({ name, store }) => (store ? [{ name, store }] : []));
  return Promise.all(kept.map(async ({ name, store }) => ({ ...(await store()), feature: name })));
}
