import type { Config } from '../../config/config.ts';
import { configLocation, readConfigFile } from '../../config/config-file.ts';
import { parseConfig } from '../../config/load-config.ts';
import type { CheckedStore } from '../../feature.ts';
import { readCertificate } from '../../http/certificate.ts';
import type { OwnNames } from '../../keys/permissions/index.ts';
import type { ProgressReport } from '../../keys/basics/index.ts';
import { readAuditKey } from '../../store/whole-store.ts';
import { checkFeatures } from './checks.ts';
import { failureBy, type Finding, ok } from './inspection/finding.ts';
import { inspectStore } from './inspection/inspect-store.ts';

/** Options of a whole examination. */
interface ExamineOptions {
  database: string | undefined;
  configFile: string | undefined;
  env: NodeJS.ProcessEnv;
  /** The host's own resources and actions, which the configuration can name. */
  ofHost: () => Promise<OwnNames>;
  /** Findings about the environment of the process. */
  environment: readonly Finding[];
  onVerified?: ProgressReport | undefined;
}

/** Checks everything that the program depends on, without changing anything. */
export async function examine(options: ExamineOptions): Promise<Finding[]> {
  const { database, env, environment, onVerified } = options;
  const { allFeatures, allStores } = await import('../index.ts');
  const { finding, config } = await inspectConfig(options);
  const findings = [...environment, finding];
  let auditKey;
  try {
    auditKey = readAuditKey(env);
  } catch (error) {
    findings.push(failureBy('AUDIT_LOG', error));
  }
  const clock = Date.now;
  let ofFeatures: Finding[] | undefined;
  const check = async (store?: CheckedStore) =>
    (ofFeatures = await checkFeatures({ config, store, env, clock, features: allFeatures() }));
  const features = await allStores();
  findings.push(
    ...(await inspectStore(database, env, { auditKey, clock, features, onVerified, checkFeatures: check })),
  );
  return ofFeatures ? findings : [...findings, ...(await check())];
}

/** The configuration, and its faults. */
async function inspectConfig({
  configFile,
  env,
  ofHost,
}: ExamineOptions): Promise<{ finding: Finding; config?: Config }> {
  try {
    const location = configLocation(configFile, env);
    const file = location && readConfigFile(location);
    const config = await parseConfig(file, await ofHost());
    if (!file) return { finding: ok('CONFIG', 'There is no svc-api.yaml, and none is needed.'), config };
    if (config.tls) readCertificate(config.tls);
    return { finding: ok('CONFIG', `${file.path} has no errors.`), config };
  } catch (error) {
    return { finding: failureBy('CONFIG', error) };
  }
}
