import { keepingFeatures } from '../features/index.ts';
import { type Config, CORE_DEFAULTS } from './config.ts';

/** The configuration without a file. */
export function defaultConfig(): Config {
  const ofFeatures = keepingFeatures().map(({ config }) => config?.defaults);
  return Object.assign({}, CORE_DEFAULTS, ...ofFeatures) as Config;
}
