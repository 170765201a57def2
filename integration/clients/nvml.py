"""A client of NVML through PyPI's nvidia-ml-py; prints one JSON object."""

import json

import pynvml


def main() -> None:
    pynvml.nvmlInit()
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    memory = pynvml.nvmlDeviceGetMemoryInfo(device)
    answer = {
        "driver": pynvml.nvmlSystemGetDriverVersion(),
        "cuda": pynvml.nvmlSystemGetCudaDriverVersion(),
        "count": pynvml.nvmlDeviceGetCount(),
        "name": pynvml.nvmlDeviceGetName(device),
        "uuid": pynvml.nvmlDeviceGetUUID(device),
        "bus_id": pynvml.nvmlDeviceGetPciInfo(device).busId,
        "total_bytes": memory.total,
        "gpu_percent": pynvml.nvmlDeviceGetUtilizationRates(device).gpu,
        "processes": len(pynvml.nvmlDeviceGetComputeRunningProcesses(device)),
    }
    try:
        pynvml.nvmlDeviceGetHandleByIndex(1)
    except pynvml.NVMLError as error:
        answer["second"] = str(error)
    pynvml.nvmlShutdown()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
