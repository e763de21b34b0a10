import type { OwnFeature } from '../feature.ts';
import { invalidFeature } from '../keys/added/index.ts';
import type { NoticeChannels } from '../keys/feed/index.ts';

/** The channels of features. @throws KeysError FEATURE_INVALID if two have the same name */
export function noticeChannelsOf(features: readonly OwnFeature[]): NoticeChannels {
  const channels: Record<string, NoticeChannels[string]> = {};
  for (const { name, notices = {} } of features)
    for (const [channel, load] of Object.entries(notices)) {
      if (Object.hasOwn(channels, channel))
        throw invalidFeature(name, `Another feature has a channel "${channel}" of notices. Give it another name.`);
      channels[channel] = load;
    }
  return channels;
}
