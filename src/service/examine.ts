import type { Config } from '../config/config.ts';
import { allFeatures, allStores } from '../features/index.ts';
import { configLocation, readConfigFile } from '../config/config-file.ts';
import { parseConfig } from '../config/load-config.ts';
import { readCertificate } from '../http/certificate.ts';
import { type NoticeSettings, shownWebhook } from '../keys/feed/index.ts';
import type { HostResource } from '../keys/permissions/index.ts';
import { printable, type ProgressReport } from '../keys/basics/index.ts';
import { readDestination } from '../features/notices/index.ts';
import { describePattern } from '../features/routes/index.ts';
import { readAuditKey } from '../store/audit-log.ts';
import { failureBy, type Finding, inspectStore, ok, warning } from '../store/index.ts';

/** Options of `examine`. */
interface ExamineOptions {
  database: string | undefined;
  configFile: string | undefined;
  env: NodeJS.ProcessEnv;
  /** The host's own resources, which the configuration can name. */
  resources: () => Promise<readonly HostResource[]>;
  /** The findings about the environment of the process. */
  environment: readonly Finding[];
  onVerified?: ProgressReport | undefined;
}

/** Checks everything that the program depends on, without changing anything. */
export async function examine(options: ExamineOptions): Promise<Finding[]> {
  const { database, env, environment, onVerified } = options;
  const { findings: config, rules, observing } = await inspectConfig(options);
  const findings = [...environment, ...config];
  let auditKey;
  try {
    auditKey = readAuditKey(env);
  } catch (error) {
    findings.push(failureBy('AUDIT_LOG', error));
  }
  const isWithoutWebhook = config.includes(NO_WEBHOOK);
  const inspected = await inspectStore(database, env, {
    auditKey,
    clock: Date.now,
    isWithoutWebhook,
    observing,
    rules,
    features: await allStores(),
    onVerified,
  });
  return [...findings, ...inspected, ...(await inspectIssuers(rules ?? []))];
}

/** Checks that the public keys of each issuer can be read from here. */
async function inspectIssuers(rules: Config['federation']): Promise<Finding[]> {
  if (rules.length === 0) return [];
  const { IssuerKeys } = await import('../features/federation/issuer-keys.ts');
  const keys = new IssuerKeys({ clock: Date.now });
  const issuers = new Map(rules.map(({ issuer }) => [JSON.stringify([issuer.url, issuer.jwks]), issuer]));
  const inspected = [...issuers.values()].map(async (issuer) => {
    const failure = await keys.failureOf(issuer);
    if (failure === undefined) return [];
    return [
      warning(
        'FEDERATION',
        `The keys of the issuer ${printable(issuer.url, 200)} cannot be read: ${failure}`,
        'See whether it can be reached. Servers refuse its tokens a day, or "keysMaxAge", after they last read its keys.',
      ),
    ];
  });
  return (await Promise.all(inspected)).flat();
}

/** Also returns the rules of token exchange, and the patterns of routes in observe mode, for checks of the store. */
async function inspectConfig({
  configFile,
  env,
  resources,
}: ExamineOptions): Promise<{ findings: Finding[]; rules?: Config['federation']; observing?: string[] }> {
  try {
    const location = configLocation(configFile, env);
    const file = location && readConfigFile(location);
    if (!file) return { findings: [ok('CONFIG', 'There is no svc-api.yaml, and none is needed.'), NO_WEBHOOK] };
    const { notices, routes, tls, federation: rules } = await parseConfig(file, await resources());
    if (tls) await readCertificate(tls);
    const ofNotices = notices ? await inspectSecrets(notices, env) : NO_WEBHOOK;
    const observing = routes.filter(({ observe }) => observe).map(describePattern);
    return { findings: [ok('CONFIG', `${file.path} has no errors.`), ofNotices], rules, observing };
  } catch (error) {
    return { findings: [failureBy('CONFIG', error)] };
  }
}

const NO_WEBHOOK = ok('NOTICES', 'The configuration names no webhook: nobody is notified of what happens to keys.');

/** Checks that the secret for signing notices can be read here. The servers may have it only in their environment. */
async function inspectSecrets(notices: NoticeSettings, env: NodeJS.ProcessEnv): Promise<Finding> {
  try {
    await readDestination(notices, env, allFeatures());
    if (notices.channel !== undefined)
      return ok('NOTICES', `Notices go to ${shownWebhook(notices.url)} by the channel ${notices.channel}.`);
    return ok('NOTICES', `The secret that signs notices for ${shownWebhook(notices.url)} can be read.`);
  } catch (error) {
    const finding = failureBy('NOTICES', error);
    const isElsewhere = notices.secretFile === undefined && !env['SVC_API_NOTICES_SECRET'];
    return isElsewhere ? { ...finding, status: 'warning' } : finding;
  }
}
